create table hot (id integer primary key, n integer not null) strict;
create table parent (id integer primary key) strict;
create table entry (
	command_id text primary key, row integer not null, amount integer not null, no text,
	parent integer references parent deferrable initially deferred
) strict;
create unique index entry_no on entry (no);
insert into hot with recursive ids(id) as (select 1 union all select id + 1 from ids where id < 200) select id, 0 from ids;
create table elsewhere_hot (id integer primary key, n integer not null) strict;
insert into elsewhere_hot select id, n from hot;
