-- outbox_event_list: ?1 tenant, ?2 not behind this id; null for all of them: ?3 type, ?4 aggregate type, ?5 aggregate id
-- Ids of events that go somewhere, newest first. Ids start with a hex digit, so 'g' stands for "from the newest". Whoever
-- has enough stops stepping.
select e.id
from ibid_event as e
where e.tenant = ?1 and e.id <= coalesce(?2, 'g') and e.topic is not null
  and (?3 is null or e.type = ?3)
  and (?4 is null or e.aggregatetype = ?4)
  and (?5 is null or e.aggregateid = ?5)
order by e.id desc
