-- 002_names: what SQL callers may give, within the bounds of libibid, so that what one accepts the other can
-- be sent again.

create function ibid_internal.check_names(tenant text, client text, actor text, resource text, correlation_id text,
	causation_id text)
returns void language plpgsql immutable parallel safe as $$
declare
	what constant text[] := array['tenant', 'client', 'actor', 'resource', 'correlation id', 'causation id'];
	given text[];
	together text collate "C" := concat(tenant, client, actor, resource, correlation_id, causation_id);
	nothing text;
begin
	-- One look at all of them is enough where nothing is unusual.
	if tenant <> '' and octet_length(together) <= 128 and together !~ '[^!-~]' then
		return;
	end if;
	given := array[tenant, client, actor, resource, correlation_id, causation_id];
	for i in 1..6 loop
		continue when i > 1 and coalesce(given[i], '') = '';
		nothing := ibid_internal.check_given(what[i], given[i], 128);
	end loop;
end $$;
comment on function ibid_internal.check_names(text, text, text, text, text, text) is
	'refuses names that libibid refuses; all but the tenant may be left out';

create function ibid_internal.check_bytes(what text, given text, bytes_max int) returns void
language plpgsql immutable parallel safe as $$
begin
	if octet_length(given) > bytes_max then
		raise exception 'the % is longer than % bytes', what, bytes_max using errcode = 'IB010';
	end if;
end $$;
comment on function ibid_internal.check_bytes(text, text, int) is 'refuses a text that is longer than libibid takes';
