-- query_savepoint: no parameters
-- A script that may only look runs behind it.
savepoint ibid_query
