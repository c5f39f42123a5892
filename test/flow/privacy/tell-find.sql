select 200 as status, null as body where :seen = 'never';
