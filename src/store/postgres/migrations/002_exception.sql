-- 002_exception: human work.

create table ibid.exception (
	tenant text collate "C",
	id uuid,
	queue text collate "C" not null,
	state text collate "C" not null,
	severity text not null,
	subject_type text collate "C" not null,
	subject_id text collate "C" not null,
	business_key text,
	source text,
	payload_ref text,
	reason text not null,
	detail text,
	suggestion text,
	owner text collate "C" not null,
	retryable boolean not null,
	actions text not null,
	needs_approval text not null default '', -- of the actions: those that a second person approves
	assignee text, -- who works on it
	service_answer text, -- what a service said that does not tell whether the work was done
	correlation_id text,
	document_type text,
	document_id text,
	opened_at timestamptz not null,
	due_at timestamptz,
	resolved_at timestamptz,
	resolution text,
	resolved_by text,
	note text,
	trace_id text,
	primary key (tenant, id),
	constraint exception_queue_check check
		(queue in ('dead-letter', 'business', 'reconciliation', 'security', 'data-quality')),
	constraint exception_state_check check (state in ('OPEN', 'RESOLVED')),
	constraint exception_severity_check check (severity in ('low', 'medium', 'high', 'critical')),
	constraint exception_owned_check check (reason <> '' and owner <> ''),
	constraint exception_resolved_check check ((state = 'RESOLVED')
		= (resolved_at is not null and resolution is not null and resolved_by is not null))
);
-- One open item per queue and subject: the same problem again is the same work. The planner can't use it instead of the
-- primary key because of its collation: see 001_baseline.
create unique index exception_open_key
	on ibid.exception (tenant collate "POSIX", queue, subject_type, subject_id) where state = 'OPEN';
comment on table ibid.exception is
	'human work: whatever stopped, why, whose it is and what may be done; never deleted by itself (I8)';
