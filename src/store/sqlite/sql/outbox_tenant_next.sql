-- outbox_tenant_next: ?1 tenant, null: before the first
-- The tenant behind it that has events: one look into the index.
select min(tenant) from ibid_event where tenant > coalesce(?1, '')
