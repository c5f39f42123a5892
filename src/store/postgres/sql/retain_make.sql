-- retain_make: $1 months ahead, $2 now
select ibid.make_partitions($1, $2)
