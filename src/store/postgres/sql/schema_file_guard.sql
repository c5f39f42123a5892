-- schema_file_guard: $1 name
select coalesce(current_setting('ibid.schema_file', true) = $1::text, false)
