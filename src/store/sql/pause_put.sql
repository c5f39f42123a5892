-- pause_put
-- demands one row: it is paused already
insert into ibid.pause (tenant, kind, name, source, paused_by, reason, since, item_tenant)
values (:tenant, :kind, :name, :source, :paused_by, :reason, :since, :item_tenant)
on conflict (tenant, kind, name) do nothing
