-- adopt_emit: $1 aggregate type, $2 aggregate id, $3 type, $4 payload, $5 version, 0 for the next, $6 key or
--   null, $7 command id
select ibid.emit($1, $2, $3, $4::text, $5, $6, $7)
