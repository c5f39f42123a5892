-- 002_trace: which trace a command belongs to (W3C trace context), and where it came from while it has no
-- audit entry.

alter table ibid_event add column traceparent text; -- who handles the event is a child of this span
alter table ibid_event add column tracestate text;
alter table ibid_audit add column traceparent text;
alter table ibid_audit add column tracestate text;
alter table ibid_exception add column trace_id text;
-- Of a command IN_PROGRESS, so that recovery goes on with them, and of an outcome that is no success. A command
-- that is COMPLETED has them in its audit entry, and nulls here.
alter table ibid_command add column correlation_id text;
alter table ibid_command add column causation_id text;
alter table ibid_command add column traceparent text;
alter table ibid_command add column tracestate text;

-- What the triggers of 002_erasure let pass, they can't have looked at these.
create trigger ibid_event_trace_is_never_edited before update of traceparent, tracestate on ibid_event
begin
  select raise(abort, 'events are never edited (I3)');
end;
create trigger ibid_audit_trace_is_never_edited before update of traceparent, tracestate on ibid_audit
begin
  select raise(abort, 'audit entries are never edited (I3)');
end;
