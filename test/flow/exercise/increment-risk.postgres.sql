insert into risk (tenant, case_id, score) values (:tenant, :case, :by)
  on conflict (tenant, case_id) do update set score = risk.score + :by;
select 200 as status;
