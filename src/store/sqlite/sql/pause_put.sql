-- pause_put: ?1 tenant, ?2 kind, ?3 name, ?4 source, ?5 by, ?6 reason, ?7 since_us, ?8 tenant of its exception or null
-- No row where it is paused already.
insert into ibid_pause (tenant, kind, name, source, paused_by, reason, since_us, item_tenant)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
on conflict (tenant, kind, name) do nothing
