-- event: $1 id, $2 tenant, $3 aggregate id, $4 type, $5 payload
-- What a service without ibid tells others.
insert into own_event (id, tenant, aggregate_id, type, payload) values ($1, $2, $3, $4, $5)
