-- contract_put: $1 kind, $2 name, $3 version, $4 digest, $5 text, $6 at
-- Kept once; whether what is kept is the same is read afterwards.
insert into ibid.contract (kind, name, version, digest, text, at)
values ($1, $2, $3, $4, $5, $6)
on conflict do nothing
