-- 002_fields: the declared members of a payload, checked as libibid checks them.
--
-- Messages have the pointer and the rule, never the value, which may be a secret. The payload is known to be JSON
-- without duplicate names: fingerprint has checked it.

create function ibid_internal.wrong_bound(rule json, value numeric) returns text
language plpgsql immutable as $$
begin
	return case
		when value <= (rule ->> 'above')::numeric then 'must be above ' || (rule ->> 'above')
		when value < (rule ->> 'at_least')::numeric then 'must be at least ' || (rule ->> 'at_least')
		when value >= (rule ->> 'below')::numeric then 'must be below ' || (rule ->> 'below')
		when value > (rule ->> 'at_most')::numeric then 'must be at most ' || (rule ->> 'at_most') end;
end $$;
comment on function ibid_internal.wrong_bound(json, numeric) is 'which bound of a field a number breaks, or null';

create function ibid_internal.wrong_number(rule json, value json) returns text
language plpgsql immutable as $$
declare
	written text := value::text;
	integer boolean := rule ->> 'type' = 'integer';
	most int := case when integer then 0 else coalesce((rule ->> 'scale')::int, 18) end;
	shape constant text := case when integer then 'must be an integer' else 'must be a number' end;
	places constant text := case when integer then shape
		else 'has more than ' || most || ' digits after the point' end;
	size constant text := case when integer then 'is beyond the range of 64-bit integers'
		else 'has more than 38 digits' end;
	power text;
	exact numeric;
begin
	if json_typeof(value) <> 'number' then
		return shape;
	end if;
	if written ~ '^-?[0.]+([eE].*)?$' then
		return ibid_internal.wrong_bound(rule, 0);
	end if;
	power := ltrim(substring(written from '[eE][+-]?([0-9]+)$'), '0');
	if length(power) > 4 then -- beyond what numeric holds
		return case when written ~ '[eE]-' then places else size end;
	end if;
	exact := trim_scale(written::numeric);
	return case
		when scale(exact) > most then places
		when integer and (exact < -9223372036854775808 or exact > 9223372036854775807) then size
		when abs(exact) * 10::numeric ^ scale(exact) >= 1e38 then size
		else ibid_internal.wrong_bound(rule, exact) end;
end $$;
comment on function ibid_internal.wrong_number(json, json) is 'what is wrong with the value of a number field, or null';

create function ibid_internal.is_date(written text) returns boolean
language plpgsql immutable as $$
begin
	return written ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' and written !~ '^0000' -- there is no year 0 here
		and make_date(substring(written from 1 for 4)::int, substring(written from 6 for 2)::int,
			substring(written from 9 for 2)::int) is not null;
exception when datetime_field_overflow then
	return false;
end $$;
comment on function ibid_internal.is_date(text) is 'YYYY-MM-DD, and a day that exists, also here';

-- nul: the character that stands for U+0000, which no text here can hold; '' where there is none.
create function ibid_internal.wrong_value(rule json, value json, nul text) returns text
language plpgsql stable as $$
declare
	kind text := rule ->> 'type';
	holds_nul boolean := nul <> '' and strpos(value::text, nul) > 0;
	written text;
begin
	if kind in ('integer', 'decimal') then
		return ibid_internal.wrong_number(rule, value);
	elsif kind = 'boolean' then
		return case when json_typeof(value) <> 'boolean' then 'must be true or false' end;
	elsif kind = 'json' then
		return case when holds_nul then 'must not contain U+0000' end;
	end if;
	if json_typeof(value) = 'string' and not holds_nul then
		written := value #>> '{}';
	end if;
	if kind = 'date' then
		return case when ibid_internal.is_date(written) is not true then 'must be a date (YYYY-MM-DD)' end;
	elsif kind = 'instant' then
		return case when coalesce(ibid_internal.instant_utc(written), '0000') ~ '^0000'
			then 'must be a date and time with a zone (RFC 3339)' end;
	end if;
	return case
		when json_typeof(value) <> 'string' then 'must be a text'
		when written is null then 'must not contain U+0000'
		when length(written) > nullif((rule ->> 'max')::bigint, 0)
			then 'is longer than ' || (rule ->> 'max') || ' characters'
		when rule -> 'one_of' is not null
			and written not in (select json_array_elements_text(rule -> 'one_of'))
			then 'must be one of ' || (select string_agg(item, ', ' order by place)
				from json_array_elements_text(rule -> 'one_of') with ordinality as allowed (item, place)) end;
end $$;
comment on function ibid_internal.wrong_value(json, json, text) is 'what is wrong with the value of a field, or null';

create function ibid_internal.unknown_fields(pointers text[], above text, value json) returns setof text
language plpgsql stable as $$
declare
	child record;
	pointer text;
begin
	for child in
		select replace(replace(name, '~', '~0'), '/', '~1') as step, item
		from json_each(case when json_typeof(value) = 'object' then value end) as members (name, item)
		union all
		select (place - 1)::text, item
		from json_array_elements(case when json_typeof(value) = 'array' then value end)
			with ordinality as items (item, place)
	loop
		pointer := above || '/' || child.step;
		if pointer = any (pointers) then
			continue;
		elsif not exists (select from unnest(pointers) as known where starts_with(known, pointer || '/')) then
			return next above || '/' || left(child.step, 60) || ' is not a declared field';
		elsif json_typeof(child.item) in ('object', 'array') then
			return query select ibid_internal.unknown_fields(pointers, pointer, child.item);
		elsif json_typeof(child.item) <> 'null' then
			return next pointer || ' must be an object';
		end if;
	end loop;
end $$;
comment on function ibid_internal.unknown_fields(text[], text, json) is 'members of a payload that the contract does not declare';

create function ibid_internal.wrong_fields(contract json, document text) returns text
language plpgsql stable as $$
declare
	given text := replace(document, '\\', '\u005c'); -- now every backslash begins an escape
	nul text := '';
	payload json;
	problems text[] := '{}';
	field record;
	value json;
	wrong text;
begin
	if strpos(given, '\u0000') > 0 then
		nul := ibid_internal.nul_for(given, '');
		given := replace(given, '\u0000', nul);
	end if;
	payload := given::json;
	if json_typeof(payload) <> 'object' then
		return 'the payload must be a JSON object';
	end if;
	for field in select f.key as pointer, f.value as rule from json_each(contract -> 'fields') as f loop
		value := payload #> ibid_internal.pointer_path(field.pointer);
		if value is null or json_typeof(value) = 'null' then
			wrong := case when field.rule ->> 'required' = 'true' then 'is missing' end;
		else
			wrong := ibid_internal.wrong_value(field.rule, value, nul);
		end if;
		if wrong is not null then
			problems := problems || (field.pointer || ' ' || wrong);
		end if;
	end loop;
	if contract ->> 'unknown_fields' = 'refuse' then
		problems := problems || array(select ibid_internal.unknown_fields(
			array(select json_object_keys(contract -> 'fields')), '', payload));
	end if;
	return nullif(array_to_string(problems[1:10], '; '), '');
end $$;
comment on function ibid_internal.wrong_fields(json, text) is
	'what is wrong with a payload''s declared fields, ten problems at most; null: nothing';

-- Most payloads are valid, and this check takes a quarter of the time of wrong_fields. True only if it is certain;
-- otherwise wrong_fields decides. Numbers of 18 and 9 digits are within any range.
create function ibid_internal.fields_hold(fields ibid.field_rule[], unknown text, document text) returns boolean
language plpgsql stable as $$
declare
	payload json := document;
	rule ibid.field_rule;
	value text;
begin
	if json_typeof(payload) <> 'object' or strpos(document, E'\\u0000') > 0 then
		return false;
	end if;
	foreach rule in array fields loop
		value := (payload #> rule.path)::text;
		if (case when coalesce(value, 'null') = 'null' then not rule.required
			when rule.type = 'text' then left(value, 1) = '"' and (rule.max is null or length(value) - 2 <= rule.max)
				and (rule.one_of is null
					or (strpos(value, E'\\') = 0 and rule.one_of ? substr(value, 2, length(value) - 2)))
			when rule.type in ('decimal', 'integer') then
				value ~ E'^-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,9})?$'
				and scale(value::numeric) <= case rule.type when 'decimal' then coalesce(rule.scale, 18) else 0 end
				and (value::numeric <= rule.above or value::numeric < rule.at_least
					or value::numeric >= rule.below or value::numeric > rule.at_most) is not true
			when rule.type = 'boolean' then value in ('true', 'false')
			when rule.type = 'json' then true end) is not true then
			return false;
		end if;
	end loop;
	if unknown = 'refuse' then
		return not exists (select from json_object_keys(payload) as m(name) where m.name ~ '[/~]'
			or '/' || m.name <> all (array(select r.pointer from unnest(fields) as r)));
	end if;
	return true;
end $$;
comment on function ibid_internal.fields_hold(ibid.field_rule[], text, text) is
	'are a payload''s declared fields right for certain?';
