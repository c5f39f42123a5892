-- pause_list: $1 tenant or null
-- What concerns all, and the tenant's own; null: everybody's.
select tenant, kind, name, source, paused_by, reason, (extract(epoch from since) * 1000000)::bigint, item_tenant
from ibid.pause
where $1::text is null or tenant in ('', $1)
order by array_position(array['relay', 'destination', 'event'], kind::text), name, tenant
