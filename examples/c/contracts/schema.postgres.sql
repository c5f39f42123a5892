create table account (id text primary key, cents bigint not null check (cents >= 0));
insert into account values ('A', 10000), ('B', 0);
create table tally (word text primary key, count bigint not null);
