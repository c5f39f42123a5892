-- 002_outbox_count: how many events wait for each destination, brought forward and not counted anew.
--
-- A command pays nothing for it. Kept is, for each lane, up to which seq its events were counted, and how many
-- of them name a destination (`written`); and for each lane of a destination, up to which cursor of its relay,
-- and how many those were (`passed`). Both are brought forward by what came since, in bounded pieces, each in a
-- transaction of the one writer: each event is counted once. Behind its cursor a relay leaves nothing but what
-- arrived and what stands in the hold, so what waits is written - passed, and the hold without what was skipped.
--
-- The cursor is kept about once a second, behind whole batches: some behind it have arrived already, or are held.
-- So the first some thousand events behind it are looked at one by one (BACKLOG_NEAR). Where all that arrived is
-- among them, which it is unless a relay has larger batches or got further in that second, the backlog is exact in
-- the asking statement's snapshot; otherwise what arrived beyond them counts as waiting until the cursor is kept.
-- Where retention deleted what had been counted as written and not yet as passed, it counts as waiting until few
-- are behind the cursor.
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
