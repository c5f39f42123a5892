select 200 as status, 'case' as resource_type, case_id as resource_id
  from projection where tenant = :tenant and case_id = :case and version = :version and status = :status;
