-- archive_months: $1 first id, $2 last id
select ibid.make_event_months($1, $2)
