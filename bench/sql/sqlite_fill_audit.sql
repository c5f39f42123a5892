-- sqlite_fill_audit: no parameters
insert into ibid_audit (id, command_id, tenant, operation, fact, outcome, contract_version, client, actor,
  resource_type, resource_id, fingerprint, at_us)
select batch.id, batch.id, model.tenant, model.operation, 'a payment is accepted', 'executed',
  model.contract_version, model.client, model.actor, model.resource_type, batch.id, model.fingerprint,
  batch.at_us
from temp.batch as batch
  cross join (select * from ibid_command where tenant = 'acme' and operation = 'pay' limit 1) as model
