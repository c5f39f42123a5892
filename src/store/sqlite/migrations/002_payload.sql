-- 002_payload: payloads, where the contract keeps them.

-- The canonical form, after the contract's classes: stored, redacted, encrypted.
create table ibid_payload (
  tenant text not null,
  command_id text not null,
  payload text not null,
  primary key (tenant, command_id)
) strict;
