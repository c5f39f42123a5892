-- api_begin: $1 tenant, $2 operation, $3 key, $4 payload, $5 client, $6 actor
select decision, command_id
from ibid.command_begin(tenant => $1, operation => $2, key => $3, payload => $4, client => $5, actor => $6)
