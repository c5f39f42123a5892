-- 002_token: bearer tokens of the server.

-- A bearer token: its public id, its tenant and client, and its roles. Of its secret only the SHA-256 is kept.
create table ibid_token (
  id text not null primary key check (length(id) = 16),
  tenant text not null,
  client text not null,
  roles text not null, -- joined by commas
  digest blob not null check (length(digest) = 32),
  created_us integer not null,
  created_by text not null,
  expires_us integer not null default 0, -- 0: never
  revoked_us integer not null default 0, -- 0: it is not
  revoked_by text
) strict, without rowid;
