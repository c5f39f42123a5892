-- 002_contract: the parts of a contract that begin and emit need, extracted when the contract is installed.

create function ibid_internal.pointer_path(pointer text) returns text[]
language plpgsql immutable strict parallel safe as $$
begin -- ~1 before ~0: ~01 is ~1
	return array(select replace(replace(part, '~1', '/'), '~0', '~')
		from unnest((string_to_array(pointer, '/'))[2:]) with ordinality as parts (part, place)
		order by place);
end $$;
comment on function ibid_internal.pointer_path(text) is 'a JSON Pointer as the path that #> takes';

-- ---- Of a command ------------------------------------------------------------------------------

create function ibid.contract_of(of_operation text, of_version int) returns json
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
	kept text;
begin
	select c.text into kept from ibid.contract as c
	where c.kind = 'command' and c.name = of_operation and (of_version is null or c.version = of_version)
	order by c.version desc limit 1;
	if not found then
		raise exception 'no contract for operation %', coalesce(quote_literal(of_operation), 'null')
			using errcode = 'IB010', hint = 'install it with ibid contract apply DIR';
	end if;
	return kept::json;
end $$;
comment on function ibid.contract_of(text, int) is 'a kept contract; version null: the newest';

create function ibid_internal.duration(written text) returns interval
language plpgsql immutable strict parallel safe as $$
begin
	return make_interval(secs => rtrim(written, 'mshdwy')::double precision
		* case ltrim(written, '0123456789') when 'ms' then 0.001 when 's' then 1 when 'm' then 60
			when 'h' then 3600 when 'd' then 86400 when 'w' then 604800 when 'y' then 31536000 end);
end $$;
comment on function ibid_internal.duration(text) is 'a duration as contracts write it: 30s, 400d';

-- Every operator on json parses the whole text anew, so the parts are extracted once.
create type ibid.field_rule as (
	pointer text, path text[], type text, required boolean, max bigint, one_of jsonb, scale int, above numeric,
	at_least numeric, below numeric, at_most numeric
);
comment on type ibid.field_rule is 'what a contract says of a field';
create type ibid.terms as (
	version int, command text, strategy text, staged json, fact text, emits jsonb, keep text, payload text,
	fields ibid.field_rule[], unknown_fields text, same_payload json, key_from json, scope json, retain interval,
	after_expiry text, rejected text, rejected_other_payload text
);
comment on type ibid.terms is 'what command_begin needs of a contract';

create function ibid_internal.terms_in(contract json) returns ibid.terms
language plpgsql immutable as $$
declare
	terms ibid.terms;
begin
	select c.version, c.command, c.strategy, c.staged, c.fact,
		(select coalesce(jsonb_agg(case jsonb_typeof(item) when 'string' then item
				else (select to_jsonb(name) from jsonb_object_keys(item) as name) end), '[]') -- how it is made is for scripts
			from jsonb_array_elements(c.emits) as item),
		c.answer ->> 'store', c.payload,
		array(select row (f.pointer, array(select replace(replace(part, '~1', '/'), '~0', '~') -- in this order
					from unnest((string_to_array(f.pointer, '/'))[2:]) with ordinality as parts (part, place)
					order by place), r.type, coalesce(r.required = 'true', false), nullif(r.max, 0), r.one_of,
				r.scale, r.above, r.at_least, r.below, r.at_most)::ibid.field_rule
			from json_each(c.fields) as f(pointer, rule)
			cross join lateral json_to_record(f.rule) as r(type text, required text, max bigint, one_of jsonb,
				scale int, above numeric, at_least numeric, below numeric, at_most numeric)),
		c.unknown_fields, c.same_payload, k."from", k.scope, ibid_internal.duration(k.retain), k.after_expiry,
		d.rejected, d.rejected_other_payload
	into terms
	from json_to_record(contract) as c(version int, command text, strategy text, staged json, fact text,
		emits jsonb, answer json, payload text, fields json, unknown_fields text, same_payload json, key json,
		duplicates json)
	cross join lateral json_to_record(c.key) as k("from" json, scope json, retain text, after_expiry text)
	cross join lateral json_to_record(c.duplicates) as d(rejected text, rejected_other_payload text);
	return terms;
end $$;
comment on function ibid_internal.terms_in(json) is 'what command_begin needs of a contract';

create function ibid_internal.kept_terms(contract text) returns ibid.terms
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
	return ibid_internal.terms_in(contract::json);
exception when data_exception then
	return null; -- whoever uses it is told
end $$;
comment on function ibid_internal.kept_terms(text) is 'terms_in, for a contract that is installed';

-- Keeps contracts of the usual length uncompressed and in the row.
alter table ibid.contract set (toast_tuple_target = 8160);
alter table ibid.contract add column terms ibid.terms
	generated always as (case when kind = 'command' then ibid_internal.kept_terms(text) end) stored;

create function ibid_internal.terms_of(of_operation text, of_version int) returns ibid.terms
language plpgsql stable as $$
declare
	terms ibid.terms := (select c.terms from ibid.contract as c
		where c.kind = 'command' and c.name = of_operation and (of_version is null or c.version = of_version)
		order by c.version desc limit 1);
begin
	if terms.version is null then
		terms := ibid_internal.terms_in(ibid.contract_of(of_operation, of_version)); -- says what is wrong
	end if;
	return terms;
end $$;
comment on function ibid_internal.terms_of(text, int) is 'what command_begin needs of a contract; version null: the newest';

-- ---- Of an event -------------------------------------------------------------------------------

create type ibid.event_field as (pointer text, path text[]);
comment on type ibid.event_field is 'a JSON Pointer, and the path that #> takes';
create type ibid.event_terms as (
	version int, aggregate text, topic text, key_from text, key_path text[], required ibid.event_field[],
	max_bytes int, headers text
);
comment on type ibid.event_terms is 'what emit needs of the contract of an event';

create function ibid_internal.event_terms_in(contract json) returns ibid.event_terms
language plpgsql immutable as $$
declare
	terms ibid.event_terms;
begin
	select c.version, c.aggregate, c.topic, c.partition_key,
		case when left(c.partition_key, 1) = '/' then ibid_internal.pointer_path(c.partition_key) end,
		array(select row (r.pointer, ibid_internal.pointer_path(r.pointer))::ibid.event_field
			from json_array_elements_text(c.required) with ordinality as r(pointer, place) order by place),
		c.max_bytes, format('{"event_version":"%s"%s}', c.version,
			(select format(',"deliver_to":"%s"', string_agg(d.name, ',' order by d.place))
			from json_array_elements_text(c.deliver_to) with ordinality as d(name, place) having count(*) > 0))
	into terms
	from json_to_record(contract) as c(version int, aggregate text, topic text, partition_key text, required json,
		max_bytes int, deliver_to json);
	return terms;
end $$;
comment on function ibid_internal.event_terms_in(json) is 'what emit needs of the contract of an event';

create function ibid_internal.kept_event_terms(contract text) returns ibid.event_terms
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
	return ibid_internal.event_terms_in(contract::json);
exception when data_exception then
	return null; -- whoever uses it is told
end $$;
comment on function ibid_internal.kept_event_terms(text) is 'event_terms_in, for a contract that is installed';

alter table ibid.contract add column event_terms ibid.event_terms
	generated always as (case when kind = 'event' then ibid_internal.kept_event_terms(text) end) stored;
