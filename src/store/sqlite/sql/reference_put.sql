-- reference_put: ?1 tenant, ?2 source system, ?3 external id, ?4 resource type, ?5 resource id,
-- ?6 command id, ?7 time
-- Changes nothing when either side is linked already.
insert into ibid_external_reference
  (tenant, source_system, external_id, resource_type, resource_id, command_id, at_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict do nothing
