-- 002_exception: human work.

-- Work that stopped, with a reason, an owner and the allowed actions (I8). Never deleted automatically.
create table ibid_exception (
  tenant text not null,
  id text not null check (length(id) = 36),
  queue text not null
    check (queue in ('dead-letter', 'business', 'reconciliation', 'security', 'data-quality')),
  state text not null check (state in ('OPEN', 'RESOLVED')),
  severity text not null check (severity in ('low', 'medium', 'high', 'critical')),
  subject_type text not null,
  subject_id text not null,
  business_key text,
  source text,
  payload_ref text,
  reason text not null check (reason <> ''),
  detail text,
  suggestion text,
  owner text not null check (owner <> ''),
  retryable integer not null check (retryable in (0, 1)),
  actions text not null,
  needs_approval text not null default '', -- of the actions: those that a second person approves
  assignee text, -- who works on it
  service_answer text, -- what a service said that does not tell whether the work was done
  correlation_id text,
  document_type text,
  document_id text,
  opened_us integer not null,
  due_us integer not null,
  resolved_us integer not null default 0,
  resolution text,
  resolved_by text,
  note text,
  trace_id text,
  primary key (tenant, id),
  check ((state = 'RESOLVED') = (resolved_us > 0 and resolution is not null and resolved_by is not null))
) strict, without rowid;
-- One open item per queue and subject: the same problem again is the same work.
create unique index ibid_exception_open on ibid_exception (tenant, queue, subject_type, subject_id)
  where state = 'OPEN';
