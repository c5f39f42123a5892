create table payment (
  tenant text not null, id uuid not null, reference text not null, amount numeric not null,
  primary key (tenant, id)
);
create unique index payment_reference on payment (tenant, reference);
create table broken (tenant text not null, id uuid);
create table timer (tenant text not null, id uuid not null, case_id text not null, state text not null, primary key (tenant, id));
create unique index timer_one_active on timer (tenant, case_id) where state = 'ACTIVE';
create table effect (tenant text not null, key text not null, command_id text not null, n integer not null default 1);
