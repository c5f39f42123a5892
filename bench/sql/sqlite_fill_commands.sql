-- sqlite_fill_commands: no parameters
-- Whatever a key does not change (scope, fingerprint, version, ...) is that of a payment which was submitted.
-- By key, so that a batch walks through the table once.
insert into ibid_command (tenant, operation, scope, key, id, state, scheme, contract_version, fingerprint,
  linked, status, resource_type, resource_id, audit_id, attempts, client, actor, created_us, finished_us,
  expires_us)
select model.tenant, model.operation, model.scope, batch.key, batch.id, model.state, model.scheme,
  model.contract_version, model.fingerprint, model.linked, model.status, model.resource_type, batch.id,
  batch.id, 1, model.client, model.actor, batch.at_us, batch.at_us, batch.at_us + 30 * 86400000000
from temp.batch as batch
  cross join (select * from ibid_command where tenant = 'acme' and operation = 'pay' limit 1) as model
order by batch.key
