create table account (id text primary key, cents integer not null check (cents >= 0)) strict;
insert into account values ('A', 10000), ('B', 0);
create table tally (word text primary key, count integer not null) strict;
