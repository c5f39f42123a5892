create table hot (id bigint primary key, n bigint not null);
create table parent (id bigint primary key);
create table entry (
	command_id uuid primary key, row bigint not null, amount bigint not null, no text,
	parent bigint references parent deferrable initially deferred
);
create unique index entry_no on entry (no);
insert into hot select id, 0 from generate_series(1, 200) as id;
create schema elsewhere;
create table elsewhere.hot (id bigint primary key, n bigint not null);
insert into elsewhere.hot select id, 0 from generate_series(1, 200) as id;
