-- archive_restore: $1 lines (an array), $2 identifier of the server that they come from
select restored, present from ibid_internal.restore_events($1::text[], $2)
