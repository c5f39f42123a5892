-- evidence_count: $1 tenant, $2 command id, $3 fingerprint, $4 client, $5 actor, $6 when
insert into ibid.evidence as e
	(tenant, command_id, fingerprint, client, actor, first_at, last_at, count)
values ($1, $2, $3, $4, $5, $6, $6, 1)
on conflict (tenant, command_id, fingerprint, client, actor) do update
	set last_at = greatest(e.last_at, excluded.last_at), count = e.count + 1
