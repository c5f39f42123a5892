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

-- Programs with libibid connect as members of ibid_service, callers of the SQL functions as members of ibid_app;
-- ibid init creates both where it may.
do $$ declare role text; begin
  foreach role in array array['ibid_service', 'ibid_app'] loop
    if to_regrole(role) is not null then
      execute format('grant select, insert on payment, ledger_entry to %I', role);
    end if;
  end loop;
end $$;
