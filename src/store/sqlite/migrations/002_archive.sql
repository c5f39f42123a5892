-- 002_archive: events that were archived.

-- Files that replaced events, one row each: never edited (I3).
create table ibid_archive (
  id integer primary key,
  at_us integer not null,
  file text not null, -- its name, in a directory that the store does not know
  range_from text not null,
  range_to text not null,
  first_id text not null check (length(first_id) = 36),
  last_id text not null check (length(last_id) = 36),
  events integer not null,
  deliveries integer not null,
  bytes integer not null,
  sha256 text not null, -- of the file
  content_sha256 text not null -- of what it holds
) strict;
create trigger ibid_archive_is_never_edited before update on ibid_archive
begin
  select raise(abort, 'archives are never edited (I3)');
end;
create trigger ibid_archive_is_never_deleted before delete on ibid_archive
begin
  select raise(abort, 'archives are never deleted (I3)');
end;
