-- query_release: no parameters
-- What follows belongs to the transaction itself again.
release savepoint ibid_query
