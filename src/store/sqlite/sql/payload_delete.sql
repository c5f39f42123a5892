-- payload_delete: ?1 tenant, ?2 command_id
delete from ibid_payload where tenant = ?1 and command_id = ?2
