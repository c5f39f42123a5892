-- 002_outbox: relays, their lanes, and the delivery of events to destinations.

-- Running relays: they share the lanes of a destination.
create table ibid_relay (
  destination text not null,
  relay text not null,
  until_us integer not null, -- if it does not say so again
  primary key (destination, relay)
) strict, without rowid;

-- The cursor of each lane of a destination, and the relay that holds the lane (I6).
create table ibid_relay_lane (
  destination text not null,
  lane integer not null,
  relay text, -- null: nobody holds it
  token integer not null,
  lease_until_us integer,
  cursor text not null, -- the last seq that was read; '': at the beginning
  moved_us integer,
  delivered integer not null,
  primary key (destination, lane),
  check ((relay is null) = (lease_until_us is null))
) strict, without rowid;

-- Evidence: where and when an event arrived; inserted, never edited (I3).
create table ibid_delivery (
  tenant text not null,
  event_id text not null check (length(event_id) = 36),
  destination text not null,
  token integer not null, -- of the lease under which it was sent
  at_us integer not null,
  place text not null, -- topic, URL or file
  partition integer,
  position integer,
  primary key (tenant, event_id, destination, token, at_us)
) strict, without rowid;
create trigger ibid_delivery_is_never_replaced before insert on ibid_delivery
when exists (select 1 from ibid_delivery where tenant = new.tenant and event_id = new.event_id
  and destination = new.destination and token = new.token and at_us = new.at_us)
begin
  select raise(rollback, 'deliveries are never replaced (I3)');
end;
create trigger ibid_delivery_is_never_edited before update on ibid_delivery
begin
  select raise(abort, 'deliveries are never edited (I3)');
end;
create trigger ibid_delivery_is_never_deleted before delete on ibid_delivery
when not exists (select 1 from ibid_retention)
begin
  select raise(abort, 'deliveries are never deleted (I3)');
end;
-- Retention deletes an event together with its evidence.
create trigger ibid_event_goes_with_its_deliveries after delete on ibid_event
begin
  delete from ibid_delivery where tenant = old.tenant and event_id = old.id;
end;

-- Events that could not be delivered, and the later events of their aggregates (I5, I8). Few rows.
create table ibid_delivery_hold (
  tenant text not null,
  event_id text not null check (length(event_id) = 36),
  destination text not null,
  lane integer not null,
  aggregatetype text not null,
  aggregateid text not null,
  version integer not null,
  state text not null check (
    state in ('WAITS', 'FAILED', 'PARKED', 'RELEASED', 'SKIPPED', 'CANCELLED', 'ELSEWHERE')),
  attempts integer not null,
  failure text,
  reason text,
  why text,
  next_us integer,
  since_us integer not null,
  passed integer not null default 0, -- SKIPPED or CANCELLED, and in nobody's way: it stays as evidence
  primary key (tenant, event_id, destination)
) strict, without rowid;
create index ibid_delivery_hold_lane
  on ibid_delivery_hold (destination, lane, tenant, aggregatetype, aggregateid, version) where not passed;
-- Read each time a lane is read, and almost always empty.
create index ibid_delivery_hold_withdrawn
  on ibid_delivery_hold (destination, lane) where state = 'CANCELLED' and not passed;
