-- retain_make: $1 months ahead, $2 now
select ibid_internal.make_partitions($1, $2)
