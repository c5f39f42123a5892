-- 002_fingerprint: keys, scopes and fingerprints in SQL, byte for byte what the library computes.
--
-- The library's own files say why it is so: src/base/canon.c, src/base/number.c, src/contract/fingerprint.c
-- and src/contract/key.c. One error state for everything that is refused:
--   IB010 a document, name or key is not acceptable, or lacks what the contract asks for
-- The text says what is wrong and, where a name is wrong, repeats it; it never repeats a value.
--
-- How it is done. The server's json type checks the grammar, keeps the texts of numbers and repeated
-- names, and takes containers apart in C; a loop over characters would take a hundred times as long.
-- The server's text can't hold U+0000, and json functions fail on its escape: while a document is worked
-- on, a private character that does not occur in it stands for U+0000. It is called `nul` below; ''
-- when there is no U+0000.
--
-- Literals with a backslash are E'', which means the same under any standard_conforming_strings. Entries
-- set the search_path, so that nobody's own replace() or json is called, and keep plans, which would be
-- made anew for every call otherwise (60 us); both cost 3 us. All other functions run inside of them, or of
-- command_begin, which does the same.
-- Order and equality are those of collation "C" everywhere. json_tree catches an error, which is not
-- allowed in a parallel query: what calls it is not parallel safe.

-- ---- Numbers -------------------------------------------------------------------------------------

create function ibid_internal.canonical_number(number text) returns text
language plpgsql immutable strict parallel safe as $$
declare
	mantissa text collate "C" := number;
	digits text collate "C";
	exponent text collate "C";
	whole int;
	point bigint; -- value = 0.DIGITS * 10^point
	many int;
	sign text := '';
begin
	if mantissa ~ E'^-?[1-9][0-9]{0,17}(\\.[0-9]{0,17}[1-9])?$' then
		return mantissa;
	elsif mantissa ~ E'^-?[1-9][0-9]{0,17}\\.[0-9]{1,17}$' then
		return rtrim(rtrim(mantissa, '0'), '.');
	elsif length(mantissa) > 4096 then
		raise exception 'a number may have at most 4096 bytes' using errcode = 'IB010';
	end if;
	if mantissa ~ '[eE]' then
		mantissa := translate(mantissa, 'E', 'e');
		exponent := split_part(mantissa, 'e', 2);
		mantissa := split_part(mantissa, 'e', 1);
		if length(ltrim(exponent, '+-0')) > 9 then
			raise exception 'a number may have exponents up to 999999999' using errcode = 'IB010';
		end if;
	end if;
	if left(mantissa, 1) = '-' then
		sign := '-';
		mantissa := substr(mantissa, 2);
	end if;
	whole := length(split_part(mantissa, '.', 1));
	digits := replace(mantissa, '.', '');
	many := length(digits);
	digits := ltrim(digits, '0');
	point := whole - (many - length(digits));
	digits := rtrim(digits, '0');
	many := length(digits);
	if many = 0 then
		return '0';
	elsif many > 4080 then
		raise exception 'a number may have at most 4080 significant digits' using errcode = 'IB010';
	elsif exponent is not null then
		point := point + exponent::bigint;
	end if;
	if point - 1 not between -999999999 and 999999999 then
		raise exception 'a number may have exponents up to 999999999' using errcode = 'IB010';
	elsif point between 1 and 21 then
		return sign || case when many <= point then rpad(digits, point::int, '0')
			else left(digits, point::int) || '.' || substr(digits, point::int + 1) end;
	elsif point between -5 and 0 then
		return sign || '0.' || repeat('0', -point::int) || digits;
	end if;
	return sign || left(digits, 1) || case when many > 1 then '.' || substr(digits, 2) else '' end
		|| case when point > 0 then 'e+' else 'e' end || point - 1;
end $$;
comment on function ibid_internal.canonical_number(text) is
	'a number that is in JSON''s grammar: its own digits in ECMAScript''s layout';

-- ---- Documents -----------------------------------------------------------------------------------

create function ibid_internal.place_of(document text, at int) returns text
language plpgsql immutable parallel safe as $$
declare
	before text collate "C" := left(document, at - 1);
begin
	return format('line %s, column %s', length(before) - length(replace(before, E'\n', '')) + 1,
		octet_length(substring(before, E'[^\n]*$')) + 1);
end $$;
comment on function ibid_internal.place_of(text, int) is 'line and column (in bytes) of a character, for an error';

create function ibid_internal.string_fault(seen text, at int, cut boolean) returns text
language plpgsql immutable parallel safe as $$
declare
	good text collate "C" := substring(substr(seen, at),
		E'^"(?:[^"\\\\\x01-\x1f]|\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*');
	next text collate "C" := substr(seen, at + length(good), 1);
begin
	return case when cut and at + length(good) > length(seen) - 6 then 'not a JSON text behind '
		when next = '' then 'unexpected end of text: the end of a string is missing at '
		when next = E'\\' then 'unknown escape in a string at '
		else 'control character in a string must be escaped at ' end
		|| ibid_internal.place_of(seen, at + length(good));
end $$;
comment on function ibid_internal.string_fault(text, int, boolean) is 'what is wrong with the string that begins there';

-- A text that the server does not take for JSON is read again, by its grammar: v a value, n a name, e the
-- end, or a sign may follow. Only its beginning: an error must not take longer than an answer.
create function ibid_internal.json_fault(document text) returns text
language plpgsql immutable parallel safe as $$
declare
	most constant int := 4000;
	seen text collate "C" := left(document, most);
	open text collate "C" := '';
	may text collate "C" := 'v';
	token text collate "C";
	kind text collate "C";
	wanted text;
	at int := 1;
begin
	for token in select t.found[1] from regexp_matches(seen, E'[ \t\n\r]+|true|false|null'
			'|-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?'
			'|"(?:[^"\\\\\x01-\x1f]|\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*"|.', 'g') as t(found) loop
		kind := case when token ~ E'^[ \t\n\r]' then ' ' when token ~ '^(?:-?[0-9]|true|false|null)' then 'v'
			when left(token, 1) = '"' then '"' else token end;
		if kind = ' ' then
			null;
		elsif token = '"' then
			return ibid_internal.string_fault(seen, at, length(document) > most);
		elsif kind in ('{', '[') and may in ('v', ']') then
			open := open || kind;
			may := case kind when '{' then '}' else ']' end; -- or the first name or value
		elsif kind in ('v', '"') and may in ('v', ']') then
			may := ',';
		elsif kind = '"' and may in ('n', '}') then
			may := ':';
		elsif kind = ':' and may = ':' then
			may := 'v';
		elsif kind = ',' and may = ',' then
			may := case right(open, 1) when '{' then 'n' else 'v' end;
		elsif kind in ('}', ']') and may in (',', kind) and right(open, 1) = translate(kind, '}]', '{[') then
			open := left(open, -1);
			may := ',';
		else
			exit;
		end if;
		may := case when may = ',' and open = '' then 'e' else may end;
		if length(open) > 64 then
			return 'more than 64 levels at ' || ibid_internal.place_of(seen, at);
		end if;
		at := at + length(token);
	end loop;
	wanted := case when may in ('v', ']') then 'a value' when may in ('n', '}') then 'a member name'
		when may = ':' then '":"' else '"," or "' || translate(right(open, 1), '{[', '}]') || '"' end;
	return case when at > most then 'not a JSON text behind '
		when at > length(seen) then format('unexpected end of text: %s is missing at ', wanted)
		when may = 'e' then 'trailing text after the value at '
		else format('expected %s, found %s at ', wanted,
			case when left(token, 1) ~ '[!-~]' then '"' || left(token, 1) || '"' else 'another character' end) end
		|| ibid_internal.place_of(seen, at);
end $$;
comment on function ibid_internal.json_fault(text) is 'what is wrong with a text that is not JSON, and where';

create function ibid_internal.json_tree(document text) returns json
language plpgsql immutable as $$
begin
	return document::json;
exception
	when invalid_text_representation then
		raise exception '%', ibid_internal.json_fault(document) using errcode = 'IB010';
	when statement_too_complex then
		raise exception 'more than 64 levels' using errcode = 'IB010';
end $$;
comment on function ibid_internal.json_tree(text) is 'a JSON text as json; any other text is refused';

-- Bytes of UTF-8 order as code points do. UTF-16 puts what lies above U+FFFF before U+E000..U+FFFF: these
-- go behind U+10FFFF, which then takes two characters. U+0000 and U+0001 take two as well. No spelling is
-- the beginning of another one, so texts order as their characters do.
create function ibid_internal.name_order(name text, nul text) returns text
language plpgsql immutable parallel safe as $$
declare
	spelled text collate "C" := replace(name, E'\x01', E'\x01\x02');
begin
	spelled := replace(spelled, nul, E'\x01\x01');
	if octet_length(spelled) = length(spelled) then
		return spelled;
	end if;
	return regexp_replace(replace(spelled, E'\U0010FFFF', E'\U0010FFFF\x01'), E'[\uE000-\uFFFF]',
		E'\U0010FFFF\\&', 'g');
end $$;
comment on function ibid_internal.name_order(text, text) is
	'a text whose bytes order as the UTF-16 code units of the name do';

-- plain: no backslash, so strings stand for themselves; simple: names order as their bytes do.
create function ibid_internal.canonical_container(value json, depth int, plain boolean, simple boolean, nul text)
returns text language plpgsql immutable parallel safe as $$
declare
	form text collate "C";
	members bigint;
	names bigint;
begin
	if depth > 64 then
		raise exception 'more than 64 levels' using errcode = 'IB010';
	elsif json_typeof(value) = 'array' then
		select string_agg(ibid_internal.canonical_value(e.value, depth + 1, plain, simple, nul), ',')
		into form from json_array_elements(value) as e(value);
		return '[' || coalesce(form, '') || ']';
	end if;
	select string_agg(case when plain then '"' || e.key || '"' else to_json(e.key)::text end || ':' ||
			ibid_internal.canonical_value(e.value, depth + 1, plain, simple, nul), ','
			order by case when simple then e.key else ibid_internal.name_order(e.key, nul) end collate "C"),
		count(*), count(distinct e.key collate "C")
	into form, members, names from json_each(value) as e(key, value);
	if members > names then
		raise exception 'duplicate member %', ibid_internal.repeated_name(value, nul) using errcode = 'IB010';
	end if;
	return '{' || coalesce(form, '') || '}';
end $$;
comment on function ibid_internal.canonical_container(json, int, boolean, boolean, text) is
	'the canonical form of an object or array';

create function ibid_internal.repeated_name(value json, nul text) returns text
language plpgsql immutable parallel safe as $$
declare
	name text collate "C";
begin
	select e.key into name from json_each(value) with ordinality as e(key, value, place)
	group by e.key having count(*) > 1 order by min(e.place) limit 1;
	return to_json(replace(left(name, 60), nul, E'\uFFFD'))::text
		|| case when length(name) > 60 then '...' else '' end;
end $$;
comment on function ibid_internal.repeated_name(json, text) is 'a name that an object has twice, for an error';

-- In SQL, so that the planner puts it into the queries that call it.
create function ibid_internal.canonical_value(value json, depth int, plain boolean, simple boolean, nul text)
returns text language sql stable parallel safe as $$
	select case left(value::text, 1)
		when '"' then case when plain then value::text else to_json(value #>> '{}')::text end
		when '{' then ibid_internal.canonical_container(value, depth, plain, simple, nul)
		when '[' then ibid_internal.canonical_container(value, depth, plain, simple, nul)
		when 't' then 'true' when 'f' then 'false' when 'n' then 'null'
		else ibid_internal.canonical_number(value::text) end
$$;
comment on function ibid_internal.canonical_value(json, int, boolean, boolean, text) is
	'the canonical form of a value, without blanks around it';

-- The frequent case in half of the time, which is that of making the larger statement ready.
create function ibid_internal.canonical_flat(value json) returns text
language plpgsql immutable parallel safe as $$
declare
	form text collate "C";
	members bigint;
	names bigint;
begin
	select string_agg('"' || e.key || '":' || case when e.value ~ '^[-0-9]' then ibid_internal.canonical_number(e.value)
			else e.value end, ',' order by e.key collate "C"), count(*), count(distinct e.key collate "C")
	into form, members, names
	from (select m.key, m.value::text from json_each(value) as m(key, value)) as e(key, value);
	if members > names then
		raise exception 'duplicate member %', ibid_internal.repeated_name(value, '') using errcode = 'IB010';
	end if;
	return '{' || coalesce(form, '') || '}';
end $$;
comment on function ibid_internal.canonical_flat(json) is
	'the canonical form of an object without containers and escapes, whose names order as their bytes do';

-- The character that stands for U+0000: one that neither text has, raw or escaped.
create function ibid_internal.nul_for(document text, other text) returns text
language plpgsql immutable parallel safe as $$
declare
	seen text collate "C" := lower(document collate "C");
begin
	for point in reverse 1114109 .. 1114102 loop -- U+10FFFD and before, the last private ones
		if strpos(seen, chr(point)) = 0 and strpos(other, chr(point)) = 0
				and strpos(seen, E'\\udbff\\udff' || to_hex(point & 15)) = 0 then
			return chr(point);
		end if;
	end loop;
	raise exception 'U+0000 can''t stand beside all of U+10FFF6 to U+10FFFD' using errcode = 'IB010';
end $$;
comment on function ibid_internal.nul_for(text, text) is 'a character that neither text has';

-- other: a text whose U+0000 is to be spelled in the same way.
create function ibid_internal.canonical_form(document text, other text, out form text, out nul text, out simple boolean)
language plpgsql immutable as $$
declare
	given text collate "C" := document;
	tree json;
	plain boolean;
begin
	if given is null then
		raise exception 'there is no document' using errcode = 'IB010';
	elsif octet_length(given) > 16777216 then
		raise exception 'the text is longer than 16777216 bytes' using errcode = 'IB010';
	end if;
	tree := ibid_internal.json_tree(given); -- whatever is done to the text below, it is JSON
	given := btrim(given, E' \t\n\r');
	plain := strpos(given, E'\\') = 0;
	nul := '';
	if not plain then
		given := replace(given, E'\\\\', E'\\u005c'); -- now every backslash begins an escape
		if regexp_replace(given, E'\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g')
				~ E'\\\\u[dD][89a-fA-F]' then
			raise exception 'lone surrogate in an escape' using errcode = 'IB010';
		end if;
	end if;
	if strpos(given, E'\\u0000') > 0 or strpos(other, E'\\u0000') > 0 then
		nul := ibid_internal.nul_for(given, other);
		given := replace(given, E'\\u0000', nul);
	end if;
	simple := plain and (octet_length(given) = length(given) or given !~ E'[\uE000-\U0010FFFF]');
	if simple and given ~ E'^{[^{[]*$' then
		form := ibid_internal.canonical_flat(given::json);
	else
		form := ibid_internal.canonical_value(given::json, 1, plain, simple, nul);
	end if;
end $$;
comment on function ibid_internal.canonical_form(text, text) is
	'the canonical form of a JSON text with a character that stands for U+0000; simple: names order as bytes';

create function ibid.canonical(document text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
	read record := ibid_internal.canonical_form(document, '');
begin
	return replace(read.form, read.nul, E'\\u0000');
end $$;
comment on function ibid.canonical(text) is
	'the canonical form of a JSON text (RFC 8785, with all digits of all numbers), or IB010';

-- ---- Instants, hashes ----------------------------------------------------------------------------

-- The server has no year 0. The calendar repeats after 400 years: dates are counted 400 years later.
create function ibid_internal.instant_utc(given text) returns text
language plpgsql immutable parallel safe as $$
declare
	instant text collate "C" := given;
	zone text collate "C";
	fraction text collate "C";
	month int;
	year int;
	minutes int;
	date date;
begin
	if instant !~ E'^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]'
			':(?:[0-5][0-9]|60)(?:\\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$' then
		return null;
	end if;
	month := substr(instant, 6, 2)::int;
	date := make_date(left(instant, 4)::int + 400, month, 1) + (substr(instant, 9, 2)::int - 1);
	if extract(month from date) <> month then
		return null; -- a day that its month lacks
	end if;
	minutes := substr(instant, 12, 2)::int * 60 + substr(instant, 15, 2)::int;
	zone := right(instant, 1);
	if zone not in ('Z', 'z') then
		zone := right(instant, 6);
		minutes := minutes - (left(zone, 1) || '1')::int * (substr(zone, 2, 2)::int * 60 + right(zone, 2)::int);
		date := date + case when minutes < 0 then -1 when minutes >= 1440 then 1 else 0 end;
		minutes := (minutes + 1440) % 1440;
	end if;
	year := extract(year from date)::int - 400;
	if year not between 0 and 9999 then
		return null;
	end if;
	fraction := rtrim(substr(instant, 20, length(instant) - 19 - length(zone)), '0');
	return lpad(year::text, 4, '0') || '-' || lpad(extract(month from date)::text, 2, '0') || '-'
		|| lpad(extract(day from date)::text, 2, '0') || 'T' || lpad((minutes / 60)::text, 2, '0') || ':'
		|| lpad((minutes % 60)::text, 2, '0') || ':' || substr(instant, 18, 2)
		|| case when fraction = '.' then '' else fraction end || 'Z';
end $$;
comment on function ibid_internal.instant_utc(text) is
	'an RFC 3339 instant in UTC with all digits that count; null for other texts';

-- The server has SHA-2 only, and UUIDs of version 5 need SHA-1.
create function ibid_internal.sha1(message bytea) returns bytea
language plpgsql immutable strict parallel safe as $$
declare
	hex text := encode(message, 'hex') || '80';
	mask constant bigint := 4294967295;
	h bigint[] := array[1732584193, 4023233417, 2562383102, 271733878, 3285377520];
	w bigint[];
	x bigint;
	a bigint;
	b bigint;
	c bigint;
	d bigint;
	e bigint;
begin
	hex := rpad(hex, (length(hex) + 16 + 127) / 128 * 128 - 16, '0')
		|| lpad(to_hex(octet_length(message)::bigint * 8), 16, '0');
	for block in 0 .. length(hex) / 128 - 1 loop
		w := array(select ('x' || substr(hex, block * 128 + i * 8 + 1, 8))::bit(32)::bigint
			from generate_series(0, 15) as i);
		for t in 17 .. 80 loop
			x := w[t - 3] # w[t - 8] # w[t - 14] # w[t - 16];
			w[t] := ((x << 1) | (x >> 31)) & mask;
		end loop;
		a := h[1]; b := h[2]; c := h[3]; d := h[4]; e := h[5];
		for t in 1 .. 80 loop
			x := (((a << 5) & mask) | (a >> 27)) + e + w[t] + case
				when t <= 20 then ((b & c) | (~b & d)) + 1518500249
				when t <= 40 then (b # c # d) + 1859775393
				when t <= 60 then ((b & c) | (b & d) | (c & d)) + 2400959708
				else (b # c # d) + 3395469782 end;
			e := d;
			d := c;
			c := ((b << 30) & mask) | (b >> 2);
			b := a;
			a := x & mask;
		end loop;
		h := array[(h[1] + a) & mask, (h[2] + b) & mask, (h[3] + c) & mask, (h[4] + d) & mask,
			(h[5] + e) & mask];
	end loop;
	return decode(lpad(to_hex(h[1]), 8, '0') || lpad(to_hex(h[2]), 8, '0') || lpad(to_hex(h[3]), 8, '0')
		|| lpad(to_hex(h[4]), 8, '0') || lpad(to_hex(h[5]), 8, '0'), 'hex');
end $$;
comment on function ibid_internal.sha1(bytea) is 'SHA-1, for uuid_v5 only';

create function ibid_internal.uuid_v5(space uuid, name text) returns uuid
language plpgsql immutable strict parallel safe as $$
declare
	hash bytea := ibid_internal.sha1(uuid_send(space) || convert_to(name, 'UTF8'));
begin
	hash := set_byte(hash, 6, (get_byte(hash, 6) & 15) | 80);
	hash := set_byte(hash, 8, (get_byte(hash, 8) & 63) | 128);
	return encode(substr(hash, 1, 16), 'hex')::uuid;
end $$;
comment on function ibid_internal.uuid_v5(uuid, text) is 'the UUID of a name in a name space (RFC 9562)';

-- ---- Given texts ---------------------------------------------------------------------------------

-- In SQL, so that the planner puts it into the expressions that call it.
create function ibid_internal.is_plain(given text, bytes_max int) returns boolean
language sql immutable parallel safe as $$
	select given ~ '^[!-~]([ -~]*[!-~])?$' and length(given) <= bytes_max
$$;
comment on function ibid_internal.is_plain(text, int) is 'is it for certain what check_given lets pass? ASCII is';

create function ibid_internal.check_given(what text, given text, bytes_max int) returns void
language plpgsql immutable parallel safe as $$
declare
	word text collate "C" := given;
	ends text collate "C" := left(word, 1) || right(word, 1);
begin
	if coalesce(word, '') = '' then
		raise exception 'the % is empty', what using errcode = 'IB010';
	elsif octet_length(word) > bytes_max then
		raise exception 'the % is longer than % bytes', what, bytes_max using errcode = 'IB010';
	elsif word ~ E'[\x01-\x1f\x7f-\u009f]' then
		raise exception 'the % has a control character at byte %', what,
			octet_length(substring(word, E'^[^\x01-\x1f\x7f-\u009f]*')) + 1 using errcode = 'IB010';
	elsif ends ~ E'[ \u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]' then
		raise exception 'the % starts or ends with a blank', what using errcode = 'IB010';
	end if;
end $$;
comment on function ibid_internal.check_given(text, text, int) is
	'refuses a key or name that is empty, too long, has control characters or blanks at its ends';

create function ibid_internal.sender_parts(operation text, parts json, place text, client text, actor text, resource text)
returns text language plpgsql immutable parallel safe as $$
declare
	declared jsonb := parts;
	part record;
	form text := '';
	nothing text;
begin
	if declared = '[]' then
		return '{}';
	elsif not (declared ? 'actor' and ibid_internal.is_plain(actor, 128) is not true
			or declared ? 'client' and ibid_internal.is_plain(client, 128) is not true
			or declared ? 'resource' and ibid_internal.is_plain(resource, 128) is not true) then -- in canonical order
		return '{' || concat_ws(',', case when declared ? 'actor' then '"actor":' || to_json(actor)::text end,
			case when declared ? 'client' then '"client":' || to_json(client)::text end,
			case when declared ? 'resource' then '"resource":' || to_json(resource)::text end) || '}';
	end if;
	for part in select p.name, p.given from (values ('actor', actor), ('client', client), ('resource', resource))
			as p(name, given) where declared ? p.name loop
		if coalesce(part.given, '') = '' then
			raise exception 'the contract of % declares % in %, so the command must name its %: give it to '
				'ibid.command_begin', operation, part.name, place, part.name using errcode = 'IB010';
		end if;
		nothing := ibid_internal.check_given(part.name, part.given, 128);
		form := form || case form when '' then '"' else ',"' end || part.name || '":' || to_json(part.given)::text;
	end loop;
	return '{' || form || '}';
end $$;
comment on function ibid_internal.sender_parts(text, json, text, text, text, text) is
	'the declared parts of the sender as a canonical JSON object';

create function ibid_internal.scope_among(operation text, scope json, client text, actor text, resource text) returns text
language plpgsql immutable parallel safe as $$
begin
	if scope is null then
		raise exception 'there is no contract that says what its keys are unique in' using errcode = 'IB010';
	elsif json_array_length(scope) = 0 then
		return '';
	end if;
	return ibid_internal.sender_parts(operation, scope, 'key.scope', client, actor, resource);
end $$;
comment on function ibid_internal.scope_among(text, json, text, text, text) is
	'the declared parts of the sender, as the scope of a key; empty when there are none';

create function ibid.scope_of(contract json, client text, actor text, resource text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
	return ibid_internal.scope_among(contract ->> 'command', contract #> '{key,scope}', client, actor, resource);
end $$;
comment on function ibid.scope_of(json, text, text, text) is
	'the scope part of a command''s identity: the declared parts of the sender; empty when there are none';

-- ---- The payload as a contract sees it -----------------------------------------------------------

-- A rule is a letter for what it does (o only, i ignore, d default and its number, t instant,
-- u unordered) and the rest of its pointer from here on: 'i/lines/*/id' at the root is 'i/*/id' at
-- /lines, 'i/id' at /lines/0, and 'i' at /lines/0/id, where it applies. Pointers are spelled as names
-- are in canonical JSON, with ~0 and ~1 left as they stand.
create function ibid_internal.rules_of(same json, as_nfc boolean) returns text[]
language plpgsql immutable parallel safe as $$
declare
	rules text[];
begin
	select array_agg(r.act || substr(p.form, 2, length(p.form) - 2) order by r.place) into rules from (
		select 0 as place, 'o' as act, json_array_elements_text(same -> 'only') as pointer
		union all select 0, 'i', json_array_elements_text(same -> 'ignore')
		union all select 0, 't', json_array_elements_text(same -> 'instants')
		union all select 0, 'u', json_array_elements_text(same -> 'unordered')
		union all select d.place, 'd' || d.place, d.pointer
			from json_each(same -> 'defaults') with ordinality as d(pointer, value, place)) as r
	cross join lateral (select case when as_nfc then ibid_internal.in_nfc(to_json(r.pointer)::text)
		else to_json(r.pointer)::text end) as p(form);
	return coalesce(rules, '{}');
end $$;
comment on function ibid_internal.rules_of(json, boolean) is 'what same_payload says of members, as a list of rules';

-- Of two defaults for one member the first counts.
create function ibid_internal.missing_members(value json, rules text[], restricted boolean, defaults text[], as_nfc boolean)
returns json language plpgsql immutable parallel safe as $$
declare
	form text;
begin
	select string_agg('"' || replace(replace(d.token, '~1', '/'), '~0', '~') || '":'
		|| case when as_nfc then ibid_internal.in_nfc(defaults[d.number]) else defaults[d.number] end, ',')
	into form from (
		select distinct on (r.token collate "C") r.token, r.number
		from (select split_part(u.rule, '/', 2), substr(split_part(u.rule, '/', 1), 2)::int
			from unnest(rules) as u(rule) where u.rule ~ '^d[0-9]+/[^/]*$') as r(token, number)
		where r.token <> '*' order by r.token collate "C", r.number) as d
	where rules && array['i/' || d.token, 'i/*']
		or (restricted and not exists (select from unnest(rules) as u(rule)
			where u.rule like 'o/%' and split_part(u.rule, '/', 2) in (d.token, '*')))
		or not exists (select from json_each(value) as e(key, value)
			where replace(replace(to_json(e.key)::text, '~', '~0'), '/', '~1') = '"' || d.token || '"');
	return ('{' || form || '}')::json;
end $$;
comment on function ibid_internal.missing_members(json, text[], boolean, text[], boolean) is
	'the defaults that an object lacks once others of its members are left out; null when there are none';

-- In SQL, so that the planner puts it into the queries that call it. `words` are all rules in one text:
-- where the token is not in it, nothing is taken apart.
create function ibid_internal.rules_below(rules text[], words text, token text)
returns table (below text[], wanted boolean, entire boolean, ignored boolean)
language sql immutable parallel safe rows 1 as $$
	select coalesce(array_agg(r.below), '{}'), coalesce(bool_or(r.below like 'o%'), false),
		coalesce(bool_or(r.below = 'o'), false), coalesce(bool_or(r.below = 'i'), false)
	from (select split_part(u.rule, '/', 1) || substr(u.rule, length(split_part(u.rule, '/', 1)
			|| split_part(u.rule, '/', 2)) + 2) as below
		from unnest(rules) as u(rule)
		where (strpos(words, '/' || token) > 0 or strpos(words, '/*') > 0)
			and u.rule like '%/%' and split_part(u.rule, '/', 2) in ('*', token)) as r
$$;
comment on function ibid_internal.rules_below(text[], text, text) is
	'the rules for a child and what is below it, and what `only` and `ignore` say of the child';

-- value is canonical but for the order of members, where that is `disordered`. restricted: `only` counts.
create function ibid_internal.shaped(value json, rules text[], restricted boolean, defaults text[], as_nfc boolean,
	disordered boolean, simple boolean, nul text)
returns text language plpgsql immutable parallel safe as $$
declare
	form text collate "C" := value::text;
	words text collate "C" := array_to_string(rules, E'\n'); -- which no pointer has
	extra json;
	sorted boolean;
	members bigint;
	names bigint;
begin
	if left(form, 1) = '"' and 't' = any (rules) then
		return coalesce('"' || ibid_internal.instant_utc(substr(form, 2, length(form) - 2)) || '"', form);
	elsif left(form, 1) not in ('{', '[') or (rules = '{}' and not disordered) then
		return form;
	elsif left(form, 1) = '[' then
		sorted := 'u' = any (rules);
		select string_agg(c.form, ',' order by
			case when sorted then replace(c.form, nul, E'\\u0000') end collate "C", c.place)
		into form from (
			select e.place, case when b.below = '{}' and (not disordered or left(e.value::text, 1) not in ('{', '['))
				then e.value::text
				else ibid_internal.shaped(e.value, b.below, restricted and not b.entire, defaults, as_nfc, disordered, simple,
					nul) end
			from json_array_elements(value) with ordinality as e(value, place)
			cross join lateral ibid_internal.rules_below(rules, words, (e.place - 1)::text) as b
			where not b.ignored and (b.wanted or not restricted)) as c(place, form);
		return '[' || coalesce(form, '') || ']';
	end if;
	if not disordered and words ~ E'^(?:i/[^/*~"\\\\\n]+(?:\n|$))+$' then -- the frequent case, in a quarter of the time
		select string_agg(to_json(e.key)::text || ':' || e.value::text, ',') into form
		from json_each(value) as e(key, value) where 'i/' || e.key <> all (rules);
		return '{' || coalesce(form, '') || '}';
	elsif words ~ 'd[0-9]+/' then
		extra := ibid_internal.missing_members(value, rules, restricted, defaults, as_nfc);
	end if;
	select string_agg(c.label || ':' || c.form, ',' order by c.rank collate "C"), count(*),
		count(distinct c.rank collate "C")
	into form, members, names from (
		select l.label, case when simple then e.key else ibid_internal.name_order(e.key, nul) end,
			case when b.below = '{}' and (not disordered or left(e.value::text, 1) not in ('{', '['))
				then e.value::text
				else ibid_internal.shaped(e.value, b.below, restricted and not b.entire, defaults, as_nfc, disordered, simple,
					nul) end
		from json_each(value) as e(key, value)
		cross join lateral (select to_json(e.key)::text) as l(label)
		cross join lateral ibid_internal.rules_below(rules, words,
			replace(replace(substr(l.label, 2, length(l.label) - 2), '~', '~0'), '/', '~1')) as b
		where not b.ignored and (b.wanted or not restricted)
		union all
		select l.label, ibid_internal.name_order(e.key, nul), ibid_internal.shaped(e.value,
				array(select u.rule from unnest(b.below) as u(rule) where u.rule !~ '^[oi]'), false, defaults,
				as_nfc, as_nfc, false, nul)
		from json_each(extra) as e(key, value)
		cross join lateral (select to_json(e.key)::text) as l(label)
		cross join lateral ibid_internal.rules_below(rules, words,
			replace(replace(substr(l.label, 2, length(l.label) - 2), '~', '~0'), '/', '~1')) as b)
		as c(label, rank, form);
	if members > names then
		raise exception 'two members of one object have the same name in Unicode NFC'
			using errcode = 'IB010';
	end if;
	return '{' || coalesce(form, '') || '}';
end $$;
comment on function ibid_internal.shaped(json, text[], boolean, text[], boolean, boolean, boolean, text) is
	'a payload as the rules of its contract see it, canonical';

create function ibid_internal.canonical_defaults(same json, nul text) returns text[]
language plpgsql immutable parallel safe as $$
begin
	if same -> 'defaults' is null then
		return '{}';
	end if;
	return array(select ibid_internal.canonical_value(btrim(replace(replace(d.value #>> '{}', E'\\\\', E'\\u005c'),
			E'\\u0000', nul), E' \t\n\r')::json, 1, false, false, nul)
		from json_each(same -> 'defaults') as d(pointer, value));
end $$;
comment on function ibid_internal.canonical_defaults(json, text) is 'the values of same_payload.defaults, canonical';

-- ---- The whole -----------------------------------------------------------------------------------

create function ibid_internal.payload_of(same json, document text) returns text
language plpgsql immutable as $$
declare
	read record := ibid_internal.canonical_form(document, same::text);
	form text collate "C" := read.form;
	as_nfc boolean;
	rules text[];
	defaults text[];
begin
	if same::text ~ '"(only|ignore|instants|unordered|defaults|nfc)":' then
		as_nfc := coalesce(same ->> 'nfc' in ('yes', 'true'), false);
		rules := ibid_internal.rules_of(same, as_nfc);
		defaults := ibid_internal.canonical_defaults(same, read.nul);
		form := case when as_nfc then ibid_internal.in_nfc(form) else form end;
		form := ibid_internal.shaped(form::json, rules, coalesce(json_array_length(same -> 'only') > 0, false), defaults,
			as_nfc, form <> read.form, read.simple and not as_nfc, read.nul);
		if defaults <> '{}' and length(form) - length(translate(form, '{[', '')) > 64 then
			form := ibid_internal.canonical_value(form::json, 1, false, false, read.nul); -- may be too deep by now
		end if;
	end if;
	return replace(form, read.nul, E'\\u0000');
end $$;
comment on function ibid_internal.payload_of(json, text) is 'a document as same_payload sees it, canonical';

create function ibid_internal.print_text(command text, version text, same json, of_tenant text, client text, actor text,
	resource text, document text)
returns text language plpgsql immutable as $$
begin
	if command is null or version is null or same is null then
		raise exception 'there is no contract that says what the same payload is' using errcode = 'IB010';
	end if;
	return '{"context":'
		|| ibid_internal.sender_parts(command, same -> 'context', 'same_payload.context', client, actor, resource)
		|| ',"operation":' || to_json(command)::text || ',"payload":' || ibid_internal.payload_of(same, document)
		|| ',"scheme":1,"tenant":' || to_json(coalesce(of_tenant, ''))::text || ',"version":' || version || '}';
end $$;
comment on function ibid_internal.print_text(text, text, json, text, text, text, text, text) is
	'fingerprint_text, of the parts of a contract that it takes';

create function ibid.fingerprint_text(contract json, of_tenant text, client text, actor text, resource text,
	document text)
returns text language plpgsql immutable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
	command text;
	version text;
	same json;
begin
	select c.command, c.version, c.same_payload into command, version, same
	from json_to_record(contract) as c(command text, version text, same_payload json);
	return ibid_internal.print_text(command, version, same, of_tenant, client, actor, resource, document);
end $$;
comment on function ibid.fingerprint_text(json, text, text, text, text, text) is
	'the text that a fingerprint (scheme 1) is the hash of: what counts as the same command';

create function ibid.fingerprint(contract json, of_tenant text, client text, actor text, resource text,
	document text)
returns bytea language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
	return sha256(convert_to(ibid.fingerprint_text(contract, of_tenant, client, actor, resource, document), 'UTF8'));
end $$;
comment on function ibid.fingerprint(json, text, text, text, text, text) is
	'SHA-256 of fingerprint_text: equal for the same command, sent again';

-- ---- Keys ----------------------------------------------------------------------------------------

create function ibid_internal.json_at(value json, pointer text) returns json
language plpgsql immutable parallel safe as $$
declare
	token text collate "C";
begin
	foreach token in array (string_to_array(pointer, '/'))[2:] loop
		token := replace(replace(token, '~1', '/'), '~0', '~');
		if json_typeof(value) = 'object' then
			value := value -> token;
		elsif json_typeof(value) = 'array' and token ~ '^(0|[1-9][0-9]{0,8})$' then
			value := value -> token::int;
		else
			return null;
		end if;
	end loop;
	return value;
end $$;
comment on function ibid_internal.json_at(json, text) is 'what a JSON Pointer leads to, or null';

create function ibid_internal.key_part(contract json, pointer text, form json) returns text
language plpgsql immutable parallel safe as $$
declare
	found_form text collate "C" := ibid_internal.json_at(form, pointer)::text;
	inner_text text collate "C";
	utc text;
begin
	if coalesce(found_form, 'null') = 'null' then
		raise exception '% is missing: the key of % is made of it', pointer, contract ->> 'command'
			using errcode = 'IB010';
	elsif left(found_form, 1) in ('{', '[') then
		raise exception '% is an %: the key of % needs a text, a number, true or false', pointer,
			case left(found_form, 1) when '[' then 'array' else 'object' end, contract ->> 'command'
			using errcode = 'IB010';
	elsif left(found_form, 1) <> '"' then
		return found_form;
	end if;
	if contract -> 'fields' -> pointer ->> 'type' = 'instant' or pointer in (
			select json_array_elements_text(contract #> '{same_payload,instants}')) then
		utc := ibid_internal.instant_utc(substr(found_form, 2, length(found_form) - 2));
	end if;
	if utc is not null then
		return '"' || utc || '"';
	elsif contract #>> '{same_payload,nfc}' in ('yes', 'true') then
		return ibid_internal.in_nfc(found_form);
	end if;
	return found_form;
end $$;
comment on function ibid_internal.key_part(json, text, json) is 'one value that a key is made of, canonical';

create function ibid_internal.derived_key(contract json, of_tenant text, document text) returns text
language plpgsql immutable as $$
declare
	read record := ibid_internal.canonical_form(document, contract::text);
	command text := contract ->> 'command';
	parts text[];
	key text collate "C";
begin
	parts := array(select ibid_internal.key_part(contract, f.pointer, read.form::json)
		from json_array_elements_text(contract #> '{key,from}') as f(pointer));
	key := '[' || replace(array_to_string(parts, ','), read.nul, E'\\u0000') || ']';
	if '""' = all (parts) then
		raise exception 'the key of % is empty: there is nothing in %', command, contract #>> '{key,from,0}'
			using errcode = 'IB010';
	elsif contract #>> '{key,form}' = 'uuid' then
		return ibid_internal.uuid_v5(ibid_internal.uuid_v5('d1e4eca4-2ec8-4414-94d1-eb1b0feac571',
			'[' || to_json(coalesce(of_tenant, ''))::text || ',' || to_json(command)::text || ']'), key)::text;
	elsif octet_length(key) > 255 then
		raise exception 'the key of % would have % bytes, 255 are allowed: `form: uuid` in its contract makes '
			'keys of any values short', command, octet_length(key) using errcode = 'IB010';
	end if;
	return key;
end $$;
comment on function ibid_internal.derived_key(json, text, text) is 'the key that a contract makes of a document';

create function ibid.key_of(contract json, of_tenant text, given text, document text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
	key text collate "C";
	nothing text;
begin
	if contract #> '{key,from}' is null then
		raise exception 'there is no contract that says where its keys are from' using errcode = 'IB010';
	elsif json_typeof(contract #> '{key,from}') = 'string' then
		if given is null then
			raise exception 'the key is missing: the caller of % makes one for each intent and gives it to '
				'ibid.command_begin', contract ->> 'command' using errcode = 'IB010';
		end if;
		nothing := ibid_internal.check_given('key', given, 255);
		return given;
	end if;
	key := ibid_internal.derived_key(contract, of_tenant, document);
	-- Hexadecimal digits have no case.
	if (key <> case when contract #>> '{key,form}' = 'uuid' then lower(given collate "C") else given end) then
		raise exception 'the given key is not the one that the contract of % makes of the payload: leave the key out',
			contract ->> 'command' using errcode = 'IB010';
	end if;
	return key;
end $$;
comment on function ibid.key_of(json, text, text, text) is
	'a command''s key: the given one, or the one that its contract makes of the document';
