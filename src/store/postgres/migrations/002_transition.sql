-- 002_transition: state machines: allowed moves, the state of each subject, and its history.

create table ibid.machine_move (
	machine text collate "C",
	from_state text collate "C",
	to_state text collate "C",
	primary key (machine, from_state, to_state)
);
comment on table ibid.machine_move is
	'moves that define_machine allows, for all tenants; the state before the first move is empty';

create table ibid.machine_state (
	tenant text collate "C",
	machine text collate "C",
	subject_id text collate "C",
	state text collate "C" not null,
	version bigint not null,
	attributes jsonb not null,
	command_id uuid not null,
	at timestamptz not null,
	primary key (tenant, machine, subject_id)
) with (fillfactor = 80);
comment on table ibid.machine_state is
	'where a subject is: moved by compare-and-set; version: how many moves it has made';

create table ibid.machine_history (
	tenant text collate "C",
	machine text collate "C",
	subject_id text collate "C",
	version bigint,
	from_state text not null,
	to_state text not null,
	attributes jsonb not null,
	command_id uuid not null,
	at timestamptz not null,
	primary key (tenant, machine, subject_id, version)
);
comment on table ibid.machine_history is 'one row per accepted move: never edited (I3)';
create trigger machine_history_is_never_edited before update or delete on ibid.machine_history
	for each row execute function ibid.refuse_edit();
create trigger machine_history_is_never_emptied before truncate on ibid.machine_history
	for each statement execute function ibid.refuse_edit();

create function ibid.define_machine(machine text, moves jsonb) returns void language plpgsql as $$
#variable_conflict use_column
declare
	fault text;
begin
	if nullif(current_setting('ibid.command_id', true), '') is not null then
		fault := 'belongs to the schema, not to a handler';
	elsif (octet_length(define_machine.machine) between 1 and 255) is not true then
		fault := 'the machine''s name is a text of 1 to 255 bytes';
	elsif (jsonb_typeof(moves) = 'array') is not true then
		fault := 'the moves are a JSON array of [from, to]';
	elsif exists (select 1 from jsonb_array_elements(moves) as e (move)
		where (jsonb_typeof(move) = 'array' and jsonb_typeof(move -> 0) = 'string'
			and jsonb_typeof(move -> 1) = 'string' and move -> 2 is null
			and octet_length(move ->> 0) <= 255
			and octet_length(move ->> 1) between 1 and 255) is not true) then
		fault := 'a move is [from, to]: two texts of at most 255 bytes, from empty for the first one';
	elsif not exists (select 1 from jsonb_array_elements(moves) as e (move) where move ->> 0 = '') then
		fault := 'no move leads from the empty state, in which everything begins';
	end if;
	if fault is not null then
		raise exception 'define_machine: %', fault using errcode = 'IB003';
	end if;
	delete from ibid.machine_move as m where m.machine = define_machine.machine;
	insert into ibid.machine_move (machine, from_state, to_state)
	select define_machine.machine, move ->> 0, move ->> 1 from jsonb_array_elements(moves) as e (move)
	on conflict do nothing;
end $$;
comment on function ibid.define_machine(text, jsonb) is
	'for schema files: a machine''s allowed moves, [[from, to], ...]; replaces those it had';

create function ibid_internal.judge_move(head ibid.machine_state, to_state text, given jsonb,
	expected_version bigint)
returns boolean language plpgsql as $$
#variable_conflict use_column
declare
	named text := head.machine || ' ' || head.subject_id;
	done text;
begin
	if head.state = judge_move.to_state and head.attributes = given
		and coalesce(expected_version, head.version) in (head.version, head.version - 1) then
		return false;
	elsif not exists (select 1 from ibid.machine_move as m where m.machine = head.machine) then
		raise exception 'move: no machine % is defined', head.machine using errcode = 'IB003';
	elsif expected_version <> head.version then
		done := ibid.reject('VERSION_CONFLICT', 409, format('%s is at version %s; the command expects %s',
			named, head.version, expected_version));
	elsif exists (select 1 from ibid.machine_move as m where m.machine = head.machine
		and m.from_state = head.state and m.to_state = judge_move.to_state) then
		return true;
	elsif head.state = judge_move.to_state then
		done := ibid.reject('ALREADY_OTHERWISE', 409, format('%s is %s already, with other attributes',
			named, head.state));
	end if;
	done := ibid.reject('NOT_ALLOWED', 409, format('%s may not move from %s to %s', named,
		coalesce(nullif(head.state, ''), 'nothing'), judge_move.to_state));
	return null;
end $$;
comment on function ibid_internal.judge_move(ibid.machine_state, text, jsonb, bigint) is
	'may the subject move? false: it did so already; otherwise a rejection';

create function ibid.move(machine text, subject_id text, to_state text, attributes jsonb default null,
	expected_version bigint default null)
returns jsonb language plpgsql as $$
#variable_conflict use_column
declare
	of_tenant text := ibid_internal.running_tenant('move');
	of_command uuid := current_setting('ibid.command_id')::uuid;
	now timestamptz := current_setting('ibid.now')::timestamptz;
	given jsonb := coalesce(move.attributes, '{}');
	head ibid.machine_state;
	known boolean;
	done text;
begin
	done := ibid_internal.require_name(move.subject_id, 'subject', 'BAD_SUBJECT');
	done := ibid_internal.require_name(move.to_state, 'state', 'BAD_STATE');
	if jsonb_typeof(given) <> 'object' or move.machine is null then
		raise exception 'move: %', case when move.machine is null then 'the machine is missing'
			else 'the attributes are a JSON object or null' end using errcode = 'IB003';
	end if;
	loop
		-- Waits for whoever moves it now, and reads what they left.
		select * into head from ibid.machine_state as s
		where s.tenant = of_tenant and s.machine = move.machine and s.subject_id = move.subject_id
		for update;
		known := found;
		if not known then
			head := row (of_tenant, move.machine, move.subject_id, '', 0, '{}', of_command, now);
		end if;
		if not ibid_internal.judge_move(head, move.to_state, given, move.expected_version) then
			return jsonb_build_object('moved', false, 'from', head.state, 'state', head.state,
				'version', head.version);
		end if;
		if known then
			update ibid.machine_state as s set state = move.to_state, version = head.version + 1,
				attributes = given, command_id = of_command, at = now
			where s.tenant = of_tenant and s.machine = move.machine and s.subject_id = move.subject_id
				and s.version = head.version;
		else
			insert into ibid.machine_state
				(tenant, machine, subject_id, state, version, attributes, command_id, at)
			values (of_tenant, move.machine, move.subject_id, move.to_state, 1, given, of_command, now)
			on conflict do nothing;
		end if;
		exit when found; -- otherwise somebody made the first move meanwhile
	end loop;
	insert into ibid.machine_history
		(tenant, machine, subject_id, version, from_state, to_state, attributes, command_id, at)
	values (of_tenant, move.machine, move.subject_id, head.version + 1, head.state, move.to_state, given,
		of_command, now);
	return jsonb_build_object('moved', true, 'from', head.state, 'state', move.to_state,
		'version', head.version + 1);
end $$;
comment on function ibid.move(text, text, text, jsonb, bigint) is
	'moves a subject to a state if the machine allows it; {"moved", "from", "state", "version"}';
