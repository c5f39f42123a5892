-- 002_event: events have a lane and the trace of their command (W3C trace context), and their payload may be erased and old
-- events deleted.

-- Relays share the lanes of a destination. An aggregate keeps the lane of its first event; aggregates of schema 1 are in
-- lane 0.
alter table ibid_aggregate add column lane integer not null default 0;
alter table ibid_event add column lane integer not null default 0;
alter table ibid_event add column traceparent text; -- the span that a consumer continues
alter table ibid_event add column tracestate text;
-- Ends in seq, as every index does: a lane is read in the order of commits.
create index ibid_event_lane on ibid_event (lane) where topic is not null;

-- An event is never edited, except by an erasure, which replaces the payload (I3).
drop trigger ibid_event_is_never_edited;
create trigger ibid_event_is_never_edited before update on ibid_event
when not exists (select 1 from ibid_erasing where command_id = old.command_id)
  or new.payload <> '{"erased":true}'
  or (new.seq, new.id, new.aggregatetype, new.aggregateid, new.type, new.tenant, new.version, new.key,
      new.command_id, new.ordinal, new.partition_key, new.created_us)
    <> (old.seq, old.id, old.aggregatetype, old.aggregateid, old.type, old.tenant, old.version, old.key,
      old.command_id, old.ordinal, old.partition_key, old.created_us)
  or new.correlation_id is not old.correlation_id or new.causation_id is not old.causation_id
  or new.topic is not old.topic or new.headers is not old.headers
begin
  select raise(abort, 'events are never edited (I3)');
end;
create trigger ibid_event_lane_is_never_edited before update of lane on ibid_event
begin
  select raise(abort, 'events are never edited (I3)');
end;
create trigger ibid_event_trace_is_never_edited before update of traceparent, tracestate on ibid_event
begin
  select raise(abort, 'events are never edited (I3)');
end;

-- Only retention deletes events (I3).
drop trigger ibid_event_is_never_deleted;
create trigger ibid_event_is_never_deleted before delete on ibid_event
when not exists (select 1 from ibid_retention)
begin
  select raise(abort, 'events are never deleted (I3)');
end;
