insert into projection (tenant, case_id, version, status) values (:tenant, :case, :version, :status)
  on conflict (tenant, case_id) do update set version = :version, status = :status;
select 200 as status, 'case' as resource_type, :case as resource_id;
