-- 002_outbox_count: how many events wait for each destination, from stored counters.
--
-- Commands do not update the counters. For each lane a row has the seq up to which its events were counted, and how
-- many of them name a destination (`written`); for each lane of a destination, the cursor of its relay up to which
-- events were counted, and their number (`passed`). A query first adds the new events to both, in bounded pieces, each
-- in a transaction of the one writer, so that each event is counted once. Before its cursor a relay leaves only events
-- that arrived or are held, so the backlog is written - passed + the hold without skipped events.
--
-- A relay stores its cursor about once a second, after whole batches, so some events behind it have arrived already,
-- or are held. The first events behind the cursor (BACKLOG_NEAR) are therefore checked one by one. If all arrived
-- events are among them (unless a relay has larger batches or is faster), the backlog is exact in the query's
-- snapshot; other arrived events count as waiting until the cursor is stored. If retention deleted events that were
-- counted as written and not yet as passed, they count as waiting until few events are behind the cursor.
create table ibid_outbox_scan (
  lane integer primary key,
  seq integer not null
) strict;
create table ibid_outbox_count (
  destination text not null,
  lane integer not null,
  written integer not null, -- events up to the seq of ibid_outbox_scan
  behind integer not null, -- a cursor of the lane's relay
  passed integer not null, -- events up to that
  primary key (destination, lane)
) strict, without rowid;
