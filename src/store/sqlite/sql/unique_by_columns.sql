-- unique_by_columns: ?1 columns as the engine's message lists them: "payment.tenant, payment.reference"
-- The unique index that a violation hit. Unique indexes over the same columns (two partial ones, say)
-- can't be told apart: all are given, separated by commas, those from a CREATE INDEX first. The list
-- is built for each index and compared, because names may hold dots and commas themselves.
select group_concat(name, ',')
from (
  select i.name
  from sqlite_schema t
  join pragma_index_list(t.name) i
  where t.type = 'table' and i."unique"
    and substr(?1, 1, length(t.name) + 1) = t.name || '.'
    and ?1 = (
      select group_concat(t.name || '.' || k.name, ', ')
      from (select name from pragma_index_xinfo(i.name) where key order by seqno) k)
  order by i.origin <> 'c', i.seq desc)
