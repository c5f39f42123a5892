-- 002_retention: the mark under which retention may delete.

-- Only retention may delete evidence (I3): its transaction inserts a row here and deletes it again.
create table ibid_retention (
  one integer primary key check (one = 1)
) strict;
