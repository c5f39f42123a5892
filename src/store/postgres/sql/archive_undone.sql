-- archive_undone: $1 from this id on, $2 before that one
select destination, state, events, ibid_internal.microseconds(since) from ibid_internal.undone_events($1, $2)
