select 200 as status, 'escalation' as resource_type, id as resource_id
  from escalation where tenant = :tenant and case_id = :case and case_version = :case_version;
