-- exception_list: $1 tenant, $2 queue, $3 state, $4 owner, $5 subject type, $6 subject id,
--   $7 older than this id, $9 assignee (null: all of them); $8 limit
-- Newest first. Planned with its values: what is null drops out, so that one tenant is read along the
-- primary key and open items along their small index.
select
	e.tenant, e.id, e.queue, e.state, e.severity, e.subject_type, e.subject_id, e.business_key, e.source,
	e.payload_ref, e.reason, e.detail, e.suggestion, e.owner, e.retryable, e.actions, e.correlation_id,
	e.document_type, e.document_id,
	(extract(epoch from e.opened_at) * 1000000)::bigint,
	(extract(epoch from e.due_at) * 1000000)::bigint,
	(extract(epoch from e.resolved_at) * 1000000)::bigint,
	e.resolution, e.resolved_by, e.note, e.trace_id, e.needs_approval, e.assignee, null::text
from ibid.exception as e
where ($1::text is null or e.tenant = $1)
	and ($2::text is null or e.queue = $2)
	and ($3::text is null or e.state = $3)
	and ($4::text is null or e.owner = $4)
	and ($5::text is null or e.subject_type = $5)
	and ($6::text is null or e.subject_id = $6)
	and ($7::uuid is null or e.id < $7)
	and ($9::text is null or e.assignee = $9)
order by e.id desc
limit $8
