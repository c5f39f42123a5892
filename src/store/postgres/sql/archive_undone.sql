-- archive_undone: $1 from this id on, $2 before that one
select destination, state, events, ibid.microseconds(since) from ibid.undone_events($1, $2)
