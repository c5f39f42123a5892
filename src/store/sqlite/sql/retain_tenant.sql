-- retain_tenant: ?1 tenant
-- The next tenant that has commands; null when there is none.
select min(tenant) from ibid_command where tenant > ?1
