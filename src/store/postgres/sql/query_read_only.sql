-- query_read_only: no parameters
-- Until the savepoint is rolled back to, which gives the right to write back.
set transaction read only
