-- 002_duplicate: how often a command was sent again, and by which client and actor.

-- Written in batches by a thread of its own: a duplicate itself writes nothing.
create table ibid.duplicate (
	tenant text collate "C",
	command_id uuid,
	first_at timestamptz not null,
	last_at timestamptz not null,
	count bigint not null,
	unlisted bigint not null, -- of those that were to be kept one by one
	primary key (tenant, command_id)
) with (fillfactor = 80);
comment on table ibid.duplicate is 'how often a command came again';

create table ibid.duplicate_seen (
	tenant text collate "C",
	command_id uuid,
	n bigint generated always as identity,
	at timestamptz not null,
	client text not null,
	actor text not null,
	decision text not null,
	fingerprint bytea not null,
	primary key (tenant, command_id, n)
);
comment on table ibid.duplicate_seen is
	'each duplicate: who, when, what it was told; where the contract says evidence: each';
