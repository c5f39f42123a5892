-- retain_drop: $1 now, $2 audit period in microseconds or null for ever, $3 only count
select kind, removed from ibid_internal.drop_partition($1, $2, $3)
