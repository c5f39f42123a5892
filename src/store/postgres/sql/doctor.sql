-- doctor: no parameters
-- What decides whether a reported commit is durable, and how this server compares with this host.
select current_setting('server_version'), current_setting('synchronous_commit'),
	current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(),
	current_setting('max_connections')::int
		- current_setting('superuser_reserved_connections')::int,
	(extract(epoch from clock_timestamp()) * 1000000)::bigint, current_setting('server_encoding'),
	pg_backend_pid()
