-- payload_delete: $1 tenant, $2 command id
delete from ibid.payload where tenant = $1 and command_id = $2
