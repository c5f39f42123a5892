-- 002_pause: what does not go on, because somebody said so.

-- A row is there while it lasts; who began and ended it stays in ibid_action, what the relay itself began in
-- ibid_exception.
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
