-- payload_delete
delete from ibid.payload where tenant = :tenant and command_id = :command_id
