-- 002_audit: audit entries carry the trace of their command (W3C trace context), and their names may be erased and
-- old entries deleted.

alter table ibid_audit add column traceparent text;
alter table ibid_audit add column tracestate text;

-- An audit entry is never edited, except by an erasure, and only to the marks that replace a name (I3).
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

create trigger ibid_audit_trace_is_never_edited before update of traceparent, tracestate on ibid_audit
begin
  select raise(abort, 'audit entries are never edited (I3)');
end;

-- Only retention deletes audit entries (I3).
drop trigger ibid_audit_is_never_deleted;
create trigger ibid_audit_is_never_deleted before delete on ibid_audit
when not exists (select 1 from ibid_retention)
begin
  select raise(abort, 'audit entries are never deleted (I3)');
end;
