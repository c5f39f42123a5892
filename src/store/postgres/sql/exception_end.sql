-- exception_end: $1 tenant, $2 id, $3 resolved, $4 resolution, $5 resolved by, $6 note,
--   $7 the proposal that is decided with it or null
-- This item, and what else was proposed for it. It fails the transaction when the item is not open.
with ended as (
	update ibid.exception
	set state = 'RESOLVED', resolved_at = $3, resolution = $4, resolved_by = $5, note = $6
	where tenant = $1 and id = $2 and state = 'OPEN'
	returning tenant, id),
lapsed as (
	update ibid.approval as a
	set decision = 'LAPSED', decided_at = $3, decided_by = $5, parameters = null
	from ended as e
	where a.tenant collate "POSIX" = e.tenant and a.subject_type = 'exception' and a.subject_id = e.id::text
		and a.decided_at is null and a.id is distinct from $7
	returning 1)
select ibid.demand(exists (select from ended), 'IB006', 'the exception is not open'), (select count(*) from lapsed)
