-- The business tables of the payments example. Money is exact text in strict tables: a numeric
-- column would round 12345678901234567.89.
create table payment (
  tenant      text not null,
  id          text not null,
  payer       text not null,
  payee       text not null,
  amount      text not null,
  currency    text not null,
  note        text,
  created_at  text not null,
  primary key (tenant, id)
) strict;

-- Double entry: each payment is one debit and one credit of the same amount.
create table ledger_entry (
  tenant      text not null,
  payment_id  text not null,
  direction   text not null check (direction in ('DEBIT', 'CREDIT')),
  account     text not null,
  amount      text not null,
  currency    text not null,
  primary key (tenant, payment_id, direction),
  foreign key (tenant, payment_id) references payment (tenant, id)
) strict;
