create table payment (
  tenant text not null, reference text not null, instruction text not null, payer text not null, amount numeric not null,
  primary key (tenant, reference));
create unique index payment_instruction on payment (tenant, instruction);
