-- archive_months: $1 first id, $2 last id
select ibid_internal.make_event_months($1, $2)
