-- audit: $1 id, $2 tenant, $3 actor, $4 action, $5 resource id
-- What a service without ibid keeps as evidence.
insert into own_audit (id, tenant, actor, action, resource_id) values ($1, $2, $3, $4, $5)
