-- 002_pause: pauses of the relay, of destinations and of event types.

-- A row exists while a pause lasts. ibid.action keeps the persons who began and ended it, ibid.exception the pauses that
-- the relay itself began.
create table ibid.pause (
	tenant text collate "C", -- of an event type; '': it concerns all
	kind text collate "C",
	name text collate "C", -- of the destination or event type; '': the relay as a whole
	source text collate "C" not null,
	paused_by text not null, -- the token's client; or the relay
	reason text not null,
	since timestamptz not null,
	item_tenant text, -- where an exception tells about it; null: none does
	primary key (tenant, kind, name),
	constraint pause_kind_check check (kind in ('relay', 'destination', 'event')),
	constraint pause_scope_check check ((kind = 'event') = (tenant <> '') and (kind = 'relay') = (name = '')),
	constraint pause_source_check check (source in ('person', 'relay')),
	constraint pause_reason_check check (reason <> '')
);
comment on table ibid.pause is 'what is paused: the relay, a destination, or an event type of one tenant';
