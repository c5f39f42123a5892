-- relay_make: what the part `relay` fills outboxes with: ibid's, and the one of the claim-and-mark pattern.
-- Twenty events a transaction: where many are one transaction's they are read together, whatever the limit.
create procedure bench_fill(first bigint, last bigint, topic text, aggregates int) language plpgsql as $$
begin
	for at in first..last by 20 loop
		insert into ibid.event (tenant, id, command_id, ordinal, aggregatetype, aggregateid, type, payload, version, key,
			topic, partition_key, headers, lane, created_at)
		select 'acme', ibid_internal.uuid_v7(), gen_random_uuid(), 1, 'note', 'a' || n % aggregates, 'Noted',
			'{"text": "' || repeat('x', 250) || '"}', n / aggregates + 1, topic || '-' || n, topic, 'a' || n % aggregates,
			'{"event_version":"1","deliver_to":"out"}', ibid_internal.lane_of('acme', 'note', 'a' || n % aggregates),
			clock_timestamp()
		from generate_series(at, least(at + 19, last)) as n;
		commit;
	end loop;
end $$;
create table outbox_event (
	outbox_id uuid primary key,
	event_id uuid not null unique,
	tenant_id text not null,
	aggregate_type text not null,
	aggregate_id text not null,
	aggregate_version bigint not null,
	event_type text not null,
	event_version integer not null,
	topic text not null,
	partition_key text not null,
	payload jsonb not null,
	headers jsonb not null default '{}'::jsonb,
	status text not null,
	available_at timestamptz not null default now(),
	attempt_count integer not null default 0,
	claimed_by text null,
	claimed_at timestamptz null,
	published_at timestamptz null,
	kafka_topic text null,
	kafka_partition integer null,
	kafka_offset bigint null,
	last_error_code text null,
	last_error_message text null,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	constraint outbox_event_status_chk check (status in ('PENDING', 'CLAIMED', 'PUBLISHED', 'FAILED', 'PARKED'))
);
create index idx_outbox_pending on outbox_event (available_at, created_at) where status = 'PENDING';
create index idx_outbox_aggregate on outbox_event (aggregate_type, aggregate_id, aggregate_version);
create index idx_outbox_status_created on outbox_event (status, created_at);
create procedure bench_fill_claimed(first bigint, last bigint, topic text, aggregates int) language plpgsql as $$
begin
	insert into outbox_event (outbox_id, event_id, tenant_id, aggregate_type, aggregate_id, aggregate_version, event_type,
		event_version, topic, partition_key, payload, status, created_at)
	select gen_random_uuid(), ibid_internal.uuid_v7(), 'acme', 'note', 'a' || n % aggregates, n / aggregates + 1, 'Noted', 1, topic,
		'a' || n % aggregates, ('{"text": "' || repeat('x', 250) || '"}')::jsonb, 'PENDING', clock_timestamp()
	from generate_series(first, last) as n;
end $$
