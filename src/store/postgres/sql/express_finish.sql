-- express_finish: the script's last statement stands in the place of :answer, its columns (or null) in
-- those of :status, :resource_type and :resource_id; behind its parameters come
--   $1 tenant, $2 operation, $3 scope, $4 key, $5 id, $6 scheme, $7 contract version, $8 fingerprint,
--   $9 client, $10 actor, $11 now, $12 expires, $13 keep the status, $14 keep the resource, $15 fact,
--   $16 correlation id, $17 causation id
-- Answers, and writes the command's row and its audit entry. Without a row, or with a status that is no
-- success, the status is null, which the table refuses: then the long way finds out what is wrong.
with answer as materialized (
:answer
), last as materialized (
	select * from answer offset greatest((select count(*) from answer) - 1, 0)
), facts as materialized (
	select case when :status between 200 and 399 then :status end as status,
		:resource_type::text as resource_type, :resource_id::text as resource_id
	from (select 1) as one left join last on true
), command as (
	insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version,
		fingerprint, linked, status, resource_type, resource_id, audit_id, attempts, client, actor,
		created_at, finished_at, expires_at)
	select $1, $2, $3, $4, $5, 'COMPLETED', $6, $7, $8, false,
		case when $13 or status is null then status else 0 end,
		case when $14 then resource_type end, case when $14 then resource_id end,
		$5, 1, $9, $10, $11, $11, $12
	from facts
), entry as (
	insert into ibid.audit (tenant, id, command_id, operation, contract_version, fact, outcome, client,
		actor, resource_type, resource_id, correlation_id, causation_id, fingerprint, at)
	select $1, $5, $5, $2, $7, $15, 'executed', $9, $10, resource_type, resource_id, $16, $17, $8, $11
	from facts
)
select * from last
