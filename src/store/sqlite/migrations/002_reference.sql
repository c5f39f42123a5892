-- 002_reference: ids that other systems have for our resources.

-- One external id means one resource, and one resource has one id in each system that knows it. Several
-- systems may know the same resource.
create table ibid_external_reference (
  tenant text not null,
  source_system text not null,
  external_id text not null,
  resource_type text not null,
  resource_id text not null,
  command_id text not null check (length(command_id) = 36),
  at_us integer not null,
  primary key (tenant, source_system, external_id)
) strict, without rowid;
create unique index ibid_external_reference_resource on ibid_external_reference
  (tenant, resource_type, resource_id, source_system);
