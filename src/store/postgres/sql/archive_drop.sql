-- archive_drop: $1 partition, $2 from this id on, $3 before that one, $4 seal
select ibid_internal.drop_event_month($1, $2, $3, $4)
