select 200 as status, jsonb_agg(tag order by tag) as body from tag where tenant = :tenant and case_id = :case;
