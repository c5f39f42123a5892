-- 002_retention: the mark under which retention may delete.

-- Retention is the one that may delete (I3): it puts a row here and takes it away in its transaction.
create table ibid_retention (
  one integer primary key check (one = 1)
) strict;
