-- 002_erasure: what is forgotten on request, and the record of it.

-- Who had what erased, when, why and how much: one row per erasure. A name in `selection` is a digest.
create table ibid_erasure (
  tenant text not null,
  id text not null check (length(id) = 36),
  by text not null,
  reason text not null,
  selection text not null,
  at_us integer not null,
  finished_us integer not null default 0, -- 0: it was cut off, or goes on
  commands integer not null,
  payloads integer not null,
  bodies integer not null,
  texts integer not null,
  events integer not null,
  names integer not null,
  exceptions integer not null,
  primary key (tenant, id)
) strict, without rowid;

-- The commands that a step of an erasure is about: put here and taken away in its transaction.
create table ibid_erasing (
  command_id text primary key
) strict, without rowid;

-- Events and audit entries are never edited, but for their being erased, to the marks that stand for what
-- was there (I3).
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
drop trigger ibid_audit_is_never_edited;
create trigger ibid_audit_is_never_edited before update on ibid_audit
when not exists (select 1 from ibid_erasing where command_id = old.command_id)
  or ifnull(new.client, 'erased') not in ('', 'erased') or ifnull(new.actor, 'erased') not in ('', 'erased')
  or (new.tenant, new.id, new.command_id, new.operation, new.fact, new.outcome, new.contract_version,
      new.fingerprint, new.at_us)
    <> (old.tenant, old.id, old.command_id, old.operation, old.fact, old.outcome, old.contract_version,
      old.fingerprint, old.at_us)
  or new.resource_type is not old.resource_type or new.resource_id is not old.resource_id
  or new.correlation_id is not old.correlation_id or new.causation_id is not old.causation_id
begin
  select raise(abort, 'audit entries are never edited (I3)');
end;
