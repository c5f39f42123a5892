-- 002_trace: a trace (W3C trace context) as one text.

-- One text holds both, so that a command passes them on at once: a traceparent, of 55 bytes, and behind a blank
-- the tracestate; or nothing. In SQL, so that the planner puts them into the expressions that call them.
create function ibid_internal.traceparent_in(trace text) returns text language sql immutable as $$
	select nullif(left(trace, 55), '')
$$;
comment on function ibid_internal.traceparent_in(text) is 'the traceparent of a trace; null: none';
create function ibid_internal.tracestate_in(trace text) returns text language sql immutable as $$
	select nullif(substr(trace, 57), '')
$$;
comment on function ibid_internal.tracestate_in(text) is 'the tracestate of a trace; null: none';

-- Callers of the SQL API; others are checked by libibid. The traceparent is kept in the form of version 00.
create function ibid_internal.check_trace(traceparent text, tracestate text) returns text
language plpgsql immutable as $$
begin
	if coalesce(traceparent, '') = '' then
		if coalesce(tracestate, '') <> '' then
			raise exception 'tracestate without a traceparent' using errcode = 'IB010';
		end if;
		return null;
	end if;
	if traceparent !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]*)?$'
		or traceparent ~ '^ff' or traceparent ~ '^00.{53}.' or traceparent ~ '^..-0{32}'
		or traceparent ~ '^.{36}0{16}' then
		raise exception 'traceparent is not one of W3C trace context: 00-<32 hex digits>-<16>-<2>, in lower case, '
			'neither id all zero' using errcode = 'IB010';
	end if;
	if octet_length(tracestate) > 512 or tracestate !~ '^[ -~]*$' then
		raise exception 'tracestate is longer than 512 bytes or not printable ASCII' using errcode = 'IB010';
	end if;
	return '00' || substr(traceparent, 3, 51) || lpad(to_hex(
		('x' || substr(traceparent, 54, 2))::bit(8)::int & case when traceparent ~ '^00' then 3 else 1 end), 2, '0')
		|| coalesce(' ' || nullif(tracestate, ''), '');
end $$;
comment on function ibid_internal.check_trace(text, text) is 'both in one text, as traceparent_in reads it; null: none';
