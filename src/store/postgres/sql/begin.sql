-- begin: no parameters
-- READ COMMITTED whatever the database's default: the look-up after the lock needs a new snapshot.
begin isolation level read committed
