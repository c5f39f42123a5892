create table payment (
  tenant text not null, reference text not null, instruction text not null, payer text not null, amount text not null,
  primary key (tenant, reference)) strict;
create unique index payment_instruction on payment (tenant, instruction);
