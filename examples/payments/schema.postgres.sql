-- The business tables of the payments example.
create table payment (
  tenant      text not null,
  id          uuid not null,
  payer       text not null,
  payee       text not null,
  amount      numeric not null check (amount > 0),
  currency    text not null,
  note        text,
  created_at  timestamptz not null,
  primary key (tenant, id)
);

-- Double entry: each payment is one debit and one credit of the same amount.
create table ledger_entry (
  tenant      text not null,
  payment_id  uuid not null,
  direction   text not null check (direction in ('DEBIT', 'CREDIT')),
  account     text not null,
  amount      numeric not null check (amount > 0),
  currency    text not null,
  primary key (tenant, payment_id, direction),
  foreign key (tenant, payment_id) references payment (tenant, id)
);

-- The service connects as a member of ibid_app, which ibid init creates where it may.
do $$ begin
  if to_regrole('ibid_app') is not null then
    grant select, insert on payment, ledger_entry to ibid_app;
  end if;
end $$;
