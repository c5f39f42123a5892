-- relay_write: $1 id, $2 aggregate, $3 version, $4 topic
insert into ibid.event (tenant, id, command_id, ordinal, aggregatetype, aggregateid, type, payload, version, key, topic,
	partition_key, headers, lane, created_at)
values ('acme', $1::text::uuid, gen_random_uuid(), 1, 'note', $2::text, 'Noted',
	'{"text": "' || repeat('x', 250) || '"}', $3::bigint, $1::text, $4::text, $2::text,
	'{"event_version":"1","deliver_to":"out"}', ibid_internal.lane_of('acme', 'note', $2::text), clock_timestamp())
