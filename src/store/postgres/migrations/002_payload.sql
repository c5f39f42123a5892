-- 002_payload: stored payloads, and how the SQL API stores those of its callers.
--
-- The canonical form is stored after the contract's classes are applied: `store` as sent, `redact` by its shape, `omit`
-- not at all. `encrypt` is not possible here: the key is not in the database.

create table ibid.payload (
	tenant text collate "C",
	command_id uuid,
	payload text not null,
	primary key (tenant, command_id)
) partition by range (command_id);
create table ibid.payload_default partition of ibid.payload default;
comment on table ibid.payload is 'what is kept of a command''s payload, where the contract says so';

create function ibid_internal.needs_key(contract json) returns boolean
language plpgsql immutable as $$
begin
	return coalesce(contract ->> 'payload', 'omit') <> 'omit' and (contract ->> 'payload' = 'encrypt'
		or exists (select from json_each(contract -> 'fields') as f where f.value ->> 'class' = 'encrypt'));
end $$;
comment on function ibid_internal.needs_key(json) is 'does the contract ask for encryption?';

-- A value of a canonical text after its class is applied; null: it is left out.
create function ibid_internal.shaped(fields json, pointer text, value json, around text) returns text
language plpgsql immutable as $$
declare
	class text := coalesce(fields -> pointer ->> 'class', around);
	kind text := json_typeof(value);
	form text;
begin
	if class = 'omit' then
		return null;
	elsif kind = 'object' then
		select string_agg(to_json(m.name)::text || ':' || m.form, ',' order by m.place) into form
		from (select e.name, e.place, ibid_internal.shaped(fields,
				pointer || '/' || replace(replace(e.name, '~', '~0'), '/', '~1'), e.item, class) as form
			from json_each(value) with ordinality as e (name, item, place)) as m
		where m.form is not null;
		return '{' || coalesce(form, '') || '}';
	elsif kind = 'array' then -- the items after one that is left out keep their places
		select string_agg(coalesce(ibid_internal.shaped(fields, pointer || '/' || (e.place - 1), e.item, class), 'null'),
			',' order by e.place) into form
		from json_array_elements(value) with ordinality as e (item, place);
		return '[' || coalesce(form, '') || ']';
	elsif class = 'redact' then
		return case kind when 'string' then '"[redacted text]"' when 'number' then '"[redacted number]"'
			when 'boolean' then '"[redacted boolean]"' else 'null' end;
	end if;
	return value::text;
end $$;
comment on function ibid_internal.shaped(json, text, json, text) is 'what is kept of a value; null: nothing';

create function ibid_internal.kept_payload(contract json, document text) returns text
language plpgsql immutable as $$
declare
	read record;
begin
	if coalesce(contract ->> 'payload', 'omit') = 'omit' then
		return null;
	end if;
	read := ibid_internal.canonical_form(document, '');
	return replace(ibid_internal.shaped(contract -> 'fields', '', read.form::json, contract ->> 'payload'), read.nul,
		E'\\u0000');
end $$;
comment on function ibid_internal.kept_payload(json, text) is
	'what is kept of a payload, with the bytes that libibid keeps; null: nothing';

-- Written with the command's row. `moved`: the previous row belonged to another contract version.
create function ibid_internal.keep_payload(of_tenant text, of_command uuid, contract json, document text, moved boolean)
returns void language plpgsql as $$
declare
	kept text := ibid_internal.kept_payload(contract, document);
begin
	if kept is not null then
		insert into ibid.payload (tenant, command_id, payload) values (of_tenant, of_command, kept)
		on conflict (tenant, command_id) do update set payload = excluded.payload;
	elsif moved then
		delete from ibid.payload as p where p.tenant = of_tenant and p.command_id = of_command;
	end if;
end $$;
comment on function ibid_internal.keep_payload(text, uuid, json, text, boolean) is
	'keeps what the contract says of a command''s payload';
