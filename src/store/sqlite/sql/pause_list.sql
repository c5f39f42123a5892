-- pause_list: ?1 tenant or null
-- What concerns all, and the tenant's own; null: everybody's.
select tenant, kind, name, source, paused_by, reason, since_us, item_tenant
from ibid_pause
where ?1 is null or tenant in ('', ?1)
order by case kind when 'relay' then 0 when 'destination' then 1 else 2 end, name, tenant
