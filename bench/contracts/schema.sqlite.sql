create table payment (
  tenant text not null, id text not null, payer text not null, payee text not null,
  amount text not null, currency text not null, primary key (tenant, id)
) strict;
-- What a service without ibid would write beside it.
create table own_event (
  id text primary key, tenant text not null, aggregate_id text not null, type text not null, payload text not null
) strict;
create table own_audit (
  id text primary key, tenant text not null, actor text not null, action text not null, resource_id text not null
) strict;
-- Few rows that many callers want.
create table account (
  tenant text not null, id text not null, balance integer not null, primary key (tenant, id)
) strict;
insert into account (tenant, id, balance)
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 200)
select 'acme', 'a' || n, 0 from numbers;
