	r.tenant, r.source_system, r.external_id, r.resource_type, r.resource_id, r.command_id, instant(r.at)
