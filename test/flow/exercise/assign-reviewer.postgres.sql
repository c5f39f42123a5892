select 200 as status, ibid.move('case', :case, 'ASSIGNED', jsonb_build_object('reviewer', :reviewer)) as body;
