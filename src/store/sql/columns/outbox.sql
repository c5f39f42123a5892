	s.tenant, s.event_id, s.event_key, s.type, s.aggregate_type, s.aggregate_id, s.version, s.topic, s.destination, s.state,
	s.attempts, s.failure, s.reason, s.why, s.waits_for, instant(s.next_at), instant(s.since), s.relay, s.place,
	coalesce(s.partition, -1) as partition, coalesce(s.position, -1) as position, instant(s.published_at),
	ibid_internal.microseconds(s.created_at) as created_at -- sqlite: s.created_us
