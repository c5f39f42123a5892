-- sqlite_batch: ?1 first, ?2 last, ?3 of how many, ?4 now in microseconds
-- Identities of completed payments, spread evenly over the 29 days that have passed: a random key, a UUIDv7
-- and its time. The statements that follow make the ledger's rows of them.
insert into temp.batch (key, id, at_us)
with recursive numbers (n, key, tail) as (
  select ?1, lower(hex(randomblob(15))), lower(hex(randomblob(9)))
  union all
  select n + 1, lower(hex(randomblob(15))), lower(hex(randomblob(9))) from numbers where n < ?2
), moments (key, tail, at_us) as (
  select key, tail, ?4 - cast(29 * 86400e6 * (1 - cast(n as real) / ?3) as integer) from numbers
)
select substr(key, 1, 8) || '-' || substr(key, 9, 4) || '-4' || substr(key, 13, 3) || '-a' || substr(key, 16, 3)
    || '-' || substr(key, 19, 12),
  substr(printf('%012x', at_us / 1000), 1, 8) || '-' || substr(printf('%012x', at_us / 1000), 9) || '-7'
    || substr(tail, 1, 3) || '-a' || substr(tail, 4, 3) || '-' || substr(tail, 7, 12),
  at_us
from moments
