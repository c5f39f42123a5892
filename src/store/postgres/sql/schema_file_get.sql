-- schema_file_get: $1 name
-- The digest under which the file ran. Also marks the transaction, so that schema_file_guard notices
-- when the file ended it.
select (select encode(digest, 'hex') from ibid.schema_file where name = $1),
	set_config('ibid.schema_file', $1, true)
