-- 002_retention: what happens to commands after their time.

-- An expired command that may run again gives its place to a new one, with an id of its own.
do $$ begin
	if to_regrole('ibid_app') is not null then
		grant update (id) on ibid.command to ibid_app;
		grant delete on ibid.answer to ibid_app;
	end if;
end $$;
