select 200 as status, json_group_array(tag) as body
  from (select tag from tag where tenant = :tenant and case_id = :case order by tag);
