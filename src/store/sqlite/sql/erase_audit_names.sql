-- erase_audit_names: ?1 tenant
update ibid_audit
set client = iif(client is null, null, 'erased'), actor = iif(actor is null, null, 'erased')
where tenant = ?1 and id in (select command_id from ibid_erasing)
