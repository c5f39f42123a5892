insert into tag (tenant, case_id, tag) values (:tenant, :case, :tag) on conflict do nothing;
select 200 as status;
