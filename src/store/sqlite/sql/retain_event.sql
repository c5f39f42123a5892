-- retain_event: ?1 older than this (us), ?2 rows at most
-- From the oldest on. The newest stays: its number must not be given again.
delete from ibid_event
where seq in (select seq from ibid_event order by seq limit ?2) and created_us < ?1
  and seq < (select max(seq) from ibid_event)
