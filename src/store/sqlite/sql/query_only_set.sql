-- query_only_set: connections of the pool only look.
pragma query_only = on
