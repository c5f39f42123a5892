-- query_undo: no parameters
rollback to savepoint ibid_query
