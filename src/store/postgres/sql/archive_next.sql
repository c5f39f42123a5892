-- archive_next: $1 behind this partition ('': from the first on), $2 created before this, $3 now
select part, name, from_id, to_id, events, (select system_identifier::text from pg_control_system())
from ibid_internal.next_event_month($1, $2, $3)
