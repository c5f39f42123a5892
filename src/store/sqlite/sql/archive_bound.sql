-- archive_bound: ?1 created before this (us)
-- Behind the last event that may go; null: there is none. The newest stays: its number must not be given again, or a
-- relay that has read so far passes over the event that gets it.
select min(newest.seq, ifnull((select seq from ibid_event where created_us >= ?1 order by seq limit 1), newest.seq))
from (select max(seq) as seq from ibid_event) as newest
