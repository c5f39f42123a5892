-- contract_put
-- Kept once; whether what is kept is the same is read afterwards.
insert into ibid.contract (kind, name, version, digest, text, at)
values (:kind, :name, :version, :digest, :text, :at)
on conflict do nothing
