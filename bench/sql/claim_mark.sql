-- claim_mark: $1 topic; arrays, an element for each event that was sent: $2 ids, $3 partitions, $4 offsets
-- Marking of the claim-and-mark pattern, a batch at a time.
update outbox_event o
set status = 'PUBLISHED', published_at = now(), kafka_topic = $1, kafka_partition = sent.partition,
	kafka_offset = sent.position, last_error_code = null, last_error_message = null, updated_at = now()
from unnest($2::uuid[], $3::int[], $4::bigint[]) as sent(outbox_id, partition, position)
where o.outbox_id = sent.outbox_id and o.status = 'CLAIMED'
