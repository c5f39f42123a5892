-- payload_put
-- A command that is run again is kept with the payload that it ran with.
insert into ibid.payload (tenant, command_id, payload)
values (:tenant, :command_id, :payload)
on conflict (tenant, command_id) do update set payload = excluded.payload
