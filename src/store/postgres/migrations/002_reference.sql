-- 002_reference: ids that other systems have for our resources.

-- One external id means one resource, and one resource has one id in each system that knows it. Several
-- systems may know the same resource.
create table ibid.external_reference (
	tenant text collate "C",
	source_system text collate "C",
	external_id text collate "C",
	resource_type text collate "C" not null,
	resource_id text collate "C" not null,
	command_id uuid not null,
	at timestamptz not null,
	primary key (tenant, source_system, external_id)
);
create unique index external_reference_resource_key on ibid.external_reference
	(tenant collate "POSIX", resource_type, resource_id, source_system);
comment on table ibid.external_reference is
	'(source system, external id) and the one resource it stands for, found from either side';

create function ibid_internal.running_tenant(caller text) returns text language plpgsql as $$
declare
	tenant text := nullif(current_setting('ibid.tenant', true), '');
begin
	if tenant is null then -- see emit_for_caller of what must not be caught
		raise exception '%: no command is running in this transaction', caller using errcode =
			case when current_setting('ibid.command_id', true) = 'group' then 'P0004' else 'IB003' end;
	end if;
	return tenant;
end $$;
comment on function ibid_internal.running_tenant(text) is
	'the tenant of the command that runs in this transaction, or an error that names the caller';

create function ibid_internal.require_name(value text, what text, reason text) returns void
language plpgsql as $$
declare
	done text;
begin
	if (octet_length(value) between 1 and 255) is not true then
		done := ibid.reject(reason, 422, format('the %s is a text of 1 to 255 bytes', what));
	end if;
end $$;
comment on function ibid_internal.require_name(text, text, text) is
	'rejects the command unless the value is a text of 1 to 255 bytes';

create function ibid.link_reference(source_system text, external_id text, resource_type text,
	resource_id text)
returns void language plpgsql as $$
#variable_conflict use_column
declare
	of_tenant text := ibid_internal.running_tenant('link_reference');
	seen ibid.external_reference;
	done text;
begin
	done := ibid_internal.require_name(link_reference.source_system, 'source system', 'BAD_REFERENCE');
	done := ibid_internal.require_name(link_reference.external_id, 'external id', 'BAD_REFERENCE');
	done := ibid_internal.require_name(link_reference.resource_type, 'resource type', 'BAD_REFERENCE');
	done := ibid_internal.require_name(link_reference.resource_id, 'resource id', 'BAD_REFERENCE');
	-- Waits for whoever is linking either side now; what they did is seen by the next statement.
	insert into ibid.external_reference
		(tenant, source_system, external_id, resource_type, resource_id, command_id, at)
	values (of_tenant, link_reference.source_system, link_reference.external_id,
		link_reference.resource_type, link_reference.resource_id,
		current_setting('ibid.command_id')::uuid, current_setting('ibid.now')::timestamptz)
	on conflict do nothing;
	if found then
		return;
	end if;
	select * into seen from ibid.external_reference as r
	where r.tenant = of_tenant and r.source_system = link_reference.source_system
		and r.external_id = link_reference.external_id;
	if not found then
		select * into seen from ibid.external_reference as r
		where r.tenant collate "POSIX" = of_tenant and r.resource_type = link_reference.resource_type
			and r.resource_id = link_reference.resource_id
			and r.source_system = link_reference.source_system;
		done := ibid.reject('RESOURCE_LINKED', 409, format('%s %s is %s of %s already',
			link_reference.resource_type, link_reference.resource_id, seen.external_id,
			link_reference.source_system));
	elsif (seen.resource_type, seen.resource_id)
		<> (link_reference.resource_type, link_reference.resource_id) then
		done := ibid.reject('REFERENCE_TAKEN', 409, format('%s of %s is %s %s already',
			link_reference.external_id, link_reference.source_system, seen.resource_type,
			seen.resource_id));
	end if;
end $$;
comment on function ibid.link_reference(text, text, text, text) is
	'says which resource an external id means; the same again is success, something else a rejection';

create function ibid.find_reference(source_system text, external_id text)
returns jsonb language plpgsql as $$
#variable_conflict use_column
declare
	of_tenant text := ibid_internal.running_tenant('find_reference');
begin
	return (select jsonb_build_object('resource_type', r.resource_type, 'resource_id', r.resource_id)
		from ibid.external_reference as r
		where r.tenant = of_tenant
			and r.source_system = find_reference.source_system
			and r.external_id = find_reference.external_id);
end $$;
comment on function ibid.find_reference(text, text) is
	'the resource that an external id means, as {"resource_type", "resource_id"}; null when none does';

create function ibid.find_external(resource_type text, resource_id text)
returns jsonb language plpgsql as $$
#variable_conflict use_column
declare
	of_tenant text := ibid_internal.running_tenant('find_external');
begin
	return (select coalesce(jsonb_agg(jsonb_build_object('source_system', r.source_system,
			'external_id', r.external_id) order by r.source_system), '[]')
		from ibid.external_reference as r
		where r.tenant collate "POSIX" = of_tenant
			and r.resource_type = find_external.resource_type
			and r.resource_id = find_external.resource_id);
end $$;
comment on function ibid.find_external(text, text) is
	'what other systems call a resource: an array of {"source_system", "external_id"}';
