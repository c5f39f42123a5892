-- 002_token: bearer tokens of the server.

create table ibid.token (
	id text collate "C" primary key, -- public: 16 hex digits
	tenant text collate "C" not null,
	client text not null,
	roles text not null, -- joined by commas
	digest bytea not null, -- SHA-256 of the secret, which is kept nowhere
	created_at timestamptz not null,
	created_by text not null,
	expires_at timestamptz, -- null: never
	revoked_at timestamptz, -- null: it is not
	revoked_by text,
	constraint token_digest_check check (length(id) = 16 and length(digest) = 32)
);
comment on table ibid.token is
	'bearer tokens of the server: whose they are, what they allow, and the SHA-256 of their secrets';
