-- 002_audit: audit entries carry the trace of their command (W3C trace context), and may be
-- erased.

alter table ibid.audit
	add column traceparent text,
	add column tracestate text;

-- Events and audit entries are never edited, except by an erasure: erase_commands marks its transaction, and may only
-- set the marks that replace erased values (I3).
create or replace function ibid.refuse_edit() returns trigger language plpgsql as $$
declare
	was jsonb;
	became jsonb;
begin
	if tg_op = 'UPDATE' and current_setting('ibid.erasing', true) = pg_current_xact_id()::text then
		was := to_jsonb(old);
		became := to_jsonb(new);
		if was - 'payload' = became - 'payload' and became ->> 'payload' = '{"erased":true}'
			or was - '{client,actor}'::text[] = became - '{client,actor}'::text[]
			and coalesce(became ->> 'client', 'erased') = 'erased' and coalesce(became ->> 'actor', 'erased') = 'erased' then
			return new;
		end if;
	end if;
	raise exception 'rows of %.% are never edited or deleted', tg_table_schema, tg_table_name
		using errcode = 'IB007';
end $$;
