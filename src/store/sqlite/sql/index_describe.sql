-- index_describe: ?1 name
-- The index of that name on the user's tables, spelled as a violation names it. An expression has no name in the pragma.
select t.name,
  (select group_concat(coalesce(k.name, '(expression)'), ', ')
   from (select name from pragma_index_xinfo(i.name) where key order by seqno) k),
  i."unique", i.partial
from sqlite_schema t
join pragma_index_list(t.name) i
where t.type = 'table' and substr(t.name, 1, 5) <> 'ibid_' and i.name = ?1
