insert into risk (tenant, case_id, score) values (:tenant, :case, :by)
  on conflict (tenant, case_id) do update set score = risk.score + :by;
select ibid_emit('case', :case, 'RiskRaised', json_object('by', :by));
select 200 as status, 'case' as resource_type, :case as resource_id;
