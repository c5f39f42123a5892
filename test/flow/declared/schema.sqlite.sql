create table payment (
  tenant text not null, id text not null, payer text not null, payee text not null, amount text not null,
  reference text, primary key (tenant, id)
) strict;
create unique index payment_reference on payment (tenant, reference);
create table account (tenant text not null, id text not null, n integer not null, primary key (tenant, id)) strict;
create table raised (tenant text not null, account text not null) strict;
insert into account (tenant, id, n) values ('t', 'a', 0), ('t', 'b', 0);
