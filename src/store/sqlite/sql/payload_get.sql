-- payload_get: ?1 tenant, ?2 command_id
select payload from ibid_payload where tenant = ?1 and command_id = ?2
