-- pause_list: tenant null: of all
-- What concerns all tenants, and what is paused for this one.
select tenant, kind, name, source, paused_by, reason, instant(since), item_tenant
from ibid.pause
where :tenant::text is null or tenant in ('', :tenant)
order by case kind when 'relay' then 0 when 'event' then 2 else 1 end, name, tenant
