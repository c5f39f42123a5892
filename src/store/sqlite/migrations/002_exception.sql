-- 002_exception: human work.
--
-- The files of schema 2 only add, so that the binary of schema 1 goes on working while the next one is
-- rolled out.

-- Human work: whatever stopped, with a reason, an owner and what may be done about it (I8).
create table ibid_exception (
  tenant text not null,
  id text not null check (length(id) = 36),
  queue text not null,
  subject_type text not null,
  subject_id text not null,
  business_key text,
  reason text not null,
  detail text,
  severity text not null check (severity in ('low', 'medium', 'high', 'critical')),
  owner text not null,
  state text not null check (state in ('OPEN', 'RESOLVED')),
  opened_us integer not null,
  due_us integer,
  resolved_us integer,
  resolution text,
  resolved_by text,
  note text,
  primary key (tenant, id)
) strict, without rowid;
-- One open item per subject and queue: the same trouble again is the same work.
create unique index ibid_exception_open on ibid_exception (tenant, queue, subject_type, subject_id)
  where state = 'OPEN';
