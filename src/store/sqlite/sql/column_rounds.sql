-- column_rounds: ?1 name of a table, ?2 of a column
-- 1 where the column's affinity turns exact text into a REAL, 0 where it does so only to what is no
-- whole number; no row where it keeps text, or there is no such column. The rules are the engine's:
-- see decimal_column.sql. ANY keeps text in a strict table.
select c.type not like '%int%'
from pragma_table_xinfo(?1) c
where c.name = ?2 collate nocase
  and (c.type like '%int%'
       or not (c.type = '' or c.type like 'any' or c.type like '%char%' or c.type like '%clob%'
               or c.type like '%text%' or c.type like '%blob%'))
