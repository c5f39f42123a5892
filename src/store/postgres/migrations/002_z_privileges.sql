-- 002_z_privileges: who may use what schema 2 adds. The last of its files.

revoke all on all functions in schema ibid from public;
do $$ begin
	if to_regrole('ibid_app') is not null then
		grant execute on all functions in schema ibid to ibid_app;
	end if;
	if to_regrole('ibid_migrator') is not null then
		grant execute on all functions in schema ibid to ibid_migrator;
	end if;
end $$;
