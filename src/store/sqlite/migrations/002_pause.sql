-- 002_pause: pauses of the relay, of destinations and of event types.

-- A row exists while a pause lasts. ibid_action keeps the persons who began and ended it, ibid_exception the pauses
-- that the relay itself began.
create table ibid_pause (
  tenant text not null, -- of an event type; '': it concerns all
  kind text not null check (kind in ('relay', 'destination', 'event')),
  name text not null, -- of the destination or event type; '': the relay as a whole
  source text not null check (source in ('person', 'relay')),
  paused_by text not null, -- the token's client; or the relay
  reason text not null check (reason <> ''),
  since_us integer not null,
  item_tenant text, -- where an exception tells about it; null: none does
  primary key (tenant, kind, name),
  check ((kind = 'event') = (tenant <> '') and (kind = 'relay') = (name = ''))
) strict, without rowid;
