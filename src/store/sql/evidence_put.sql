-- evidence_put
insert into ibid.evidence as e (tenant, command_id, fingerprint, client, actor, first_at, last_at, count)
values (:tenant, :command_id, :fingerprint, :client, :actor, coalesce(:first_at::timestamptz, :last_at), :last_at, 1)
on conflict (tenant, command_id, fingerprint, client, actor) do update set
	-- sqlite: first_us = min(e.first_us, excluded.first_us),
	last_at = greatest(e.last_at, excluded.last_at), -- sqlite: last_us = max(e.last_us, excluded.last_us),
	count = e.count + 1
