-- exception_assign: $1 tenant, $2 id, $3 owner or null, $4 assignee or null
-- Null leaves it as it is. It fails the transaction when the item is not open.
with assigned as (
	update ibid.exception set owner = coalesce($3, owner), assignee = coalesce($4, assignee)
	where tenant = $1 and id = $2 and state = 'OPEN'
	returning 1)
select ibid.demand(exists (select from assigned), 'IB006', 'the exception is not open')
