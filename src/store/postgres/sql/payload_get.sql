-- payload_get: $1 tenant, $2 command id
select payload from ibid.payload where tenant = $1 and command_id = $2
