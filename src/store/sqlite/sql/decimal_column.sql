-- decimal_column: ?1 name of a column
-- A column of that name, in the user's tables, whose affinity would turn exact text into a number.
-- The rules are the engine's: INT anywhere wins, then CHAR, CLOB and TEXT, then BLOB or nothing.
select t.name || '.' || c.name || ' ' || c.type
from sqlite_schema t
join pragma_table_xinfo(t.name) c
where t.type = 'table' and substr(t.name, 1, 5) <> 'ibid_' and c.name = ?1 collate nocase
  and (c.type like '%int%'
       or not (c.type = '' or c.type like '%char%' or c.type like '%clob%' or c.type like '%text%'
               or c.type like '%blob%'))
order by 1
limit 1
