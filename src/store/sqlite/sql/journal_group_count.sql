-- journal_group_count: ?1 tenant, ?2 first id, ?3 last id
-- How many groups a command has posted: their ids are a range.
select count(*)
from ibid_journal_group
where tenant = ?1 and id between ?2 and ?3
