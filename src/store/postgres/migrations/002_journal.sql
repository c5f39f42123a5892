-- 002_journal: double-entry groups, appended once per source operation.

create table ibid.journal_group (
	tenant text collate "C",
	id uuid,
	source text collate "C" not null,
	command_id uuid not null,
	posting_date date not null,
	description text,
	at timestamptz not null,
	primary key (tenant, id)
);
create unique index journal_group_source_key on ibid.journal_group (tenant collate "POSIX", source);
comment on table ibid.journal_group is
	'one group of journal lines per source operation: appended whole, never edited (I3)';

create table ibid.journal_line (
	tenant text collate "C",
	group_id uuid,
	line int,
	account text collate "C" not null,
	direction text not null check (direction in ('DEBIT', 'CREDIT')),
	amount numeric not null check (amount > 0),
	currency text collate "C" not null,
	primary key (tenant, group_id, line),
	foreign key (tenant, group_id) references ibid.journal_group (tenant, id)
);
create index journal_line_account on ibid.journal_line (tenant collate "POSIX", account, group_id);
comment on table ibid.journal_line is
	'debits and credits of a group, equal per currency: never edited (I3)';

create trigger journal_group_is_never_edited before update or delete on ibid.journal_group
	for each row execute function ibid.refuse_edit();
create trigger journal_line_is_never_edited before update or delete on ibid.journal_line
	for each row execute function ibid.refuse_edit();
create trigger journal_group_is_never_emptied before truncate on ibid.journal_group
	for each statement execute function ibid.refuse_edit();
create trigger journal_line_is_never_emptied before truncate on ibid.journal_line
	for each statement execute function ibid.refuse_edit();

-- One statement must insert whole groups, and no line can be added to a group later.
create function ibid_internal.refuse_half_group() returns trigger language plpgsql as $$
begin
	if exists (select from added as a group by a.tenant, a.group_id, a.currency
			having sum(case a.direction when 'DEBIT' then a.amount else -a.amount end) <> 0)
		or (select count(*) from added) <> (select count(*) from ibid.journal_line as l
			where (l.tenant, l.group_id) in (select a.tenant, a.group_id from added as a)) then
		raise exception 'journal groups are appended whole and balanced, by ibid.post' using errcode = 'IB007';
	end if;
	return null;
end $$;
comment on function ibid_internal.refuse_half_group() is 'refuses lines that are not a whole, balanced group';
create trigger journal_line_is_of_a_whole_group after insert on ibid.journal_line
	referencing new table as added for each statement execute function ibid_internal.refuse_half_group();

create function ibid_internal.decimal_fits(value numeric) returns boolean language plpgsql immutable as $$
begin
	return scale(trim_scale(value)) <= 18
		and octet_length(ltrim(replace(trim_scale(abs(value))::text, '.', ''), '0')) <= 38;
end $$;
comment on function ibid_internal.decimal_fits(numeric) is
	'does the value have at most 38 digits, 18 of them after the point, as decimals have in libibid?';

-- The amount is checked as text before it is cast: the cast would accept NaN, too.
create function ibid_internal.check_journal_line(line jsonb, number bigint) returns void
language plpgsql as $$
declare
	amount text := line ->> 'amount';
	code text;
	said text;
	done text;
begin
	if jsonb_typeof(line) <> 'object'
		or line - array['account', 'direction', 'amount', 'currency'] <> '{}' then
		code := 'BAD_LINES';
		said := 'is an object of account, direction, amount and currency';
	elsif (jsonb_typeof(line -> 'account') = 'string'
		and octet_length(line ->> 'account') between 1 and 255) is not true then
		code := 'BAD_ACCOUNT';
		said := 'the account is a text of 1 to 255 bytes';
	elsif (line -> 'direction' in ('"DEBIT"', '"CREDIT"')) is not true then
		code := 'BAD_DIRECTION';
		said := 'the direction is DEBIT or CREDIT';
	elsif (jsonb_typeof(line -> 'currency') = 'string' and line ->> 'currency' ~ '^[A-Z]{3}$')
		is not true then
		code := 'BAD_CURRENCY';
		said := 'the currency is three letters A-Z';
	elsif (jsonb_typeof(line -> 'amount') in ('number', 'string') and octet_length(amount) <= 4096
		and amount ~ '^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?0*[0-9]{1,3})?$') is not true then
		code := 'BAD_AMOUNT';
	elsif amount::numeric <= 0 or not ibid_internal.decimal_fits(amount::numeric) then
		code := 'BAD_AMOUNT';
	end if;
	if code is not null then
		said := coalesce(said,
			'the amount is a decimal above 0 of at most 38 digits, 18 of them after the point');
		done := ibid.reject(code, 422, format('line %s: %s', number, said));
	end if;
end $$;
comment on function ibid_internal.check_journal_line(jsonb, bigint) is
	'rejects the command unless this is one line of a journal group';

create function ibid_internal.journal_lines(lines jsonb)
returns table (line int, account text, direction text, amount numeric, currency text)
language plpgsql as $$
begin
	return query select item.number::int, item.value ->> 'account', item.value ->> 'direction',
		trim_scale((item.value ->> 'amount')::numeric), item.value ->> 'currency'
	from jsonb_array_elements(lines) with ordinality as item (value, number);
end $$;
comment on function ibid_internal.journal_lines(jsonb) is 'the lines of a group, from JSON that was checked';

create function ibid_internal.check_journal_lines(lines jsonb) returns void language plpgsql as $$
#variable_conflict use_column
declare
	item record;
	total record;
	done text;
begin
	if (jsonb_typeof(lines) = 'array') is not true then
		done := ibid.reject('BAD_LINES', 422, 'the lines are a JSON array');
	elsif jsonb_array_length(lines) = 0 then
		done := ibid.reject('EMPTY_GROUP', 422, 'a group has at least one debit and one credit');
	elsif jsonb_array_length(lines) > 10000 then
		done := ibid.reject('BAD_LINES', 422, 'a group has at most 10000 lines');
	end if;
	for item in select value, number from jsonb_array_elements(lines) with ordinality as e (value, number)
	loop
		done := ibid_internal.check_journal_line(item.value, item.number);
	end loop;
	for total in
		select l.currency, coalesce(sum(l.amount) filter (where l.direction = 'DEBIT'), 0) as debits,
			coalesce(sum(l.amount) filter (where l.direction = 'CREDIT'), 0) as credits,
			bool_and(ibid_internal.decimal_fits(l.so_far)) as fits
		from (select *, sum(amount) over (partition by currency, direction order by line) as so_far
			from ibid_internal.journal_lines(lines)) as l
		group by l.currency order by l.currency collate "C"
	loop
		if not total.fits then
			done := ibid.reject('BAD_AMOUNT', 422, format('%s: the amounts add up to more than 38 digits',
				total.currency));
		elsif total.debits <> total.credits then
			done := ibid.reject('UNBALANCED', 422, format('%s: debits are %s, credits %s%s', total.currency,
				trim_scale(total.debits), trim_scale(total.credits),
				case when ibid_internal.decimal_fits(total.debits - total.credits)
					then format(', the difference is %s', trim_scale(total.debits - total.credits)) end));
		end if;
	end loop;
end $$;
comment on function ibid_internal.check_journal_lines(jsonb) is
	'rejects the command unless these are lines whose debits equal their credits in every currency';

create function ibid.post(source text, lines jsonb, posting_date date default null,
	description text default null)
returns uuid language plpgsql as $$
#variable_conflict use_column
declare
	of_tenant text := ibid_internal.running_tenant('post');
	of_command uuid := current_setting('ibid.command_id')::uuid;
	of_source text := coalesce(post.source, of_command::text);
	now timestamptz := current_setting('ibid.now')::timestamptz;
	number int;
	new_id uuid;
	seen ibid.journal_group;
	done text;
begin
	done := ibid_internal.require_name(of_source, 'source', 'BAD_SOURCE');
	if octet_length(post.description) > 1024 then
		done := ibid.reject('BAD_DESCRIPTION', 422, 'the description is longer than 1024 bytes');
	end if;
	done := ibid_internal.check_journal_lines(post.lines);
	-- Like events, the n-th group of a command has the command's id with n in its last two bytes.
	select count(*) + 1 into number from ibid.journal_group as g
	where g.tenant = of_tenant and g.id between overlay(of_command::text placing '0000' from 33)::uuid
		and overlay(of_command::text placing 'ffff' from 33)::uuid;
	if number > 65535 then
		raise exception 'post: more than 65535 groups in one command' using errcode = 'IB003';
	end if;
	new_id := overlay(of_command::text placing lpad(to_hex(number), 4, '0') from 33);
	insert into ibid.journal_group (tenant, id, source, command_id, posting_date, description, at)
	values (of_tenant, new_id, of_source, of_command,
		coalesce(post.posting_date, (now at time zone 'UTC')::date), post.description, now)
	on conflict do nothing;
	if found then
		insert into ibid.journal_line (tenant, group_id, line, account, direction, amount, currency)
		select of_tenant, new_id, l.line, l.account, l.direction, l.amount, l.currency
		from ibid_internal.journal_lines(post.lines) as l;
		return new_id;
	end if;
	select * into seen from ibid.journal_group as g
	where g.tenant collate "POSIX" = of_tenant and g.source = of_source;
	if post.posting_date <> seen.posting_date or exists (
		(select account, direction, amount, currency from ibid_internal.journal_lines(post.lines)
			except all select account, direction, amount, currency from ibid.journal_line as l
			where l.tenant = of_tenant and l.group_id = seen.id)
		union all
		(select account, direction, amount, currency from ibid.journal_line as l
			where l.tenant = of_tenant and l.group_id = seen.id
			except all select account, direction, amount, currency from ibid_internal.journal_lines(post.lines)))
	then
		done := ibid.reject('SOURCE_POSTED', 409, format('%s was posted as group %s with other lines or '
			'another date', of_source, seen.id));
	end if;
	return seen.id;
end $$;
comment on function ibid.post(text, jsonb, date, text) is
	'appends a balanced group of journal lines once per source operation (null: the command); returns its id';
