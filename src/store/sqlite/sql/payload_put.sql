-- payload_put: ?1 tenant, ?2 command_id, ?3 payload
-- A command that is run again is told by the payload that it ran with.
insert into ibid_payload (tenant, command_id, payload)
values (?1, ?2, ?3)
on conflict do update set payload = excluded.payload
