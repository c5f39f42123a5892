create table payment (
  tenant text not null, id uuid not null, payer text not null, payee text not null,
  amount numeric not null, currency text not null, primary key (tenant, id)
);
-- What a service without ibid would write beside it.
create table own_event (
  id uuid primary key, tenant text not null, aggregate_id uuid not null, type text not null, payload text not null
);
create table own_audit (
  id uuid primary key, tenant text not null, actor text not null, action text not null, resource_id uuid not null
);
-- Few rows that many callers want.
create table account (
  tenant text not null, id text not null, balance bigint not null, primary key (tenant, id)
);
insert into account (tenant, id, balance) select 'acme', 'a' || n, 0 from generate_series(1, 200) as n;
