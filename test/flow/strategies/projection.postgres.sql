select 200 as status, jsonb_build_object('version', version) as body, 'case' as resource_type, case_id as resource_id
  from projection where tenant = :tenant and case_id = :case;
