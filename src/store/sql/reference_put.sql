-- reference_put
-- Changes nothing when either side is linked already.
insert into ibid.external_reference (
	tenant, source_system, external_id, resource_type, resource_id, command_id, at)
values (:tenant, :source_system, :external_id, :resource_type, :resource_id, :command_id, :at)
on conflict do nothing
