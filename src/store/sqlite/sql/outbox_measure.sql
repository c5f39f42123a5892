-- outbox_measure: ?1 how many lanes there are, ?2 so many events behind each cursor are looked at one by one, ?3 now
with recursive lanes (lane) as (
  select 0 union all select lane + 1 from lanes where lane + 1 < ?1
), news as materialized (
  select d.value as destination, h.lane, sum(h.events) as events
  from (
    select l.lane, e.headers, count(*) as events
    from lanes as l
    cross join ibid_event as e
    where e.lane = l.lane and e.topic is not null
      and e.seq > coalesce((select s.seq from ibid_outbox_scan as s where s.lane = l.lane), 0)
    group by l.lane, e.headers) as h,
    json_each('["' || replace(json_extract(h.headers, '$.deliver_to'), ',', '","') || '"]') as d
  group by d.value, h.lane
), each_lane as materialized (
  select destination, lane, sum(written) as written, sum(passed) as passed, max(behind) as behind
  from (
    select destination, lane, written, passed, behind from ibid_outbox_count
    union all select destination, lane, events, 0, 0 from news
    union all select destination, lane, 0, 0, 0 from ibid_relay_lane)
  group by destination, lane
), place as materialized (
  select e.*, coalesce(cast(r.cursor as integer), 0) as cursor, coalesce(r.delivered, 0) as delivered,
    coalesce(r.moved_us, 0) as moved_us, coalesce(r.lease_until_us > ?3, 0) as leased
  from each_lane as e
  left join ibid_relay_lane as r on r.destination = e.destination and r.lane = e.lane
), looked as materialized (
  select p.*,
    (select count(*) from (select 1 from ibid_event as e
      where e.lane = p.lane and e.topic is not null and e.seq > p.cursor limit ?2)) as looked,
    (select json_array(count(*) filter (where waits), min(created_us) filter (where waits), count(*)) from (
      select b.created_us,
        not exists (select 1 from ibid_delivery as d
          where d.tenant = b.tenant and d.event_id = b.id and d.destination = p.destination)
        and not exists (select 1 from ibid_delivery_hold as h
          where h.tenant = b.tenant and h.event_id = b.id and h.destination = p.destination) as waits
      from (
        select e.tenant, e.id, e.headers, e.created_us from ibid_event as e
        where e.lane = p.lane and e.topic is not null and e.seq > p.cursor order by e.seq limit ?2) as b
      where instr(',' || json_extract(b.headers, '$.deliver_to') || ',', ',' || p.destination || ',') > 0)) as near
  from place as p
), behind as materialized (
  select l.destination, l.written, l.delivered, l.moved_us, l.leased,
    case when l.looked < ?2 then json_extract(l.near, '$[0]') else max(json_extract(l.near, '$[0]'),
      l.written - l.passed - (json_extract(l.near, '$[2]') - json_extract(l.near, '$[0]'))
      - (select count(*) from ibid_event as e
        where e.lane = l.lane and e.topic is not null and e.seq > l.behind and e.seq <= l.cursor
          and instr(',' || json_extract(e.headers, '$.deliver_to') || ',', ',' || l.destination || ',') > 0)) end as waiting,
    case when json_extract(l.near, '$[0]') > 0 then json_extract(l.near, '$[1]') when l.looked >= ?2 then (
      select e.created_us from ibid_event as e
      where e.lane = l.lane and e.topic is not null and e.seq > l.cursor order by e.seq limit 1 offset ?2 - 1) end as since_us
  from looked as l
), whole as materialized (
  select destination, sum(written) as written, sum(delivered) as delivered, sum(waiting) as waiting,
    min(since_us) as since_us, sum(leased) as leased, max(moved_us) as moved_us
  from behind group by destination
), holds as materialized (
  select destination, count(*) as held, count(*) filter (where state = 'FAILED') as failed,
    count(*) filter (where state = 'PARKED') as parked,
    (select e.created_us from ibid_event as e -- the id of an event begins with its time
      where e.tenant = h.tenant and e.id = h.event_id) as since_us, min(event_id)
  from ibid_delivery_hold as h
  where state in ('WAITS', 'FAILED', 'PARKED', 'RELEASED')
  group by destination
)
select w.destination, w.written, w.delivered, w.waiting + coalesce(h.held, 0), coalesce(h.held, 0),
  coalesce(h.failed, 0), coalesce(h.parked, 0),
  coalesce(max(0, ?3 - min(coalesce(w.since_us, h.since_us), coalesce(h.since_us, w.since_us))), 0),
  w.leased, w.moved_us
from whole as w
left join holds as h on h.destination = w.destination
order by w.destination
