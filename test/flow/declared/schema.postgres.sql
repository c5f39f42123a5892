create table payment (
  tenant text not null, id uuid not null, payer text not null, payee text not null, amount numeric not null,
  reference text, primary key (tenant, id)
);
create unique index payment_reference on payment (tenant, reference);
create table account (tenant text not null, id text not null, n integer not null, primary key (tenant, id));
create table raised (tenant text not null, account text not null);
insert into account (tenant, id, n) values ('t', 'a', 0), ('t', 'b', 0);
