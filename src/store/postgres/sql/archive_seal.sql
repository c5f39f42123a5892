-- archive_seal: $1 from this id on, $2 before that one
select ibid_internal.event_seal($1, $2)
