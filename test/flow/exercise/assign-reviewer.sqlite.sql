select 200 as status, ibid_move('case', :case, 'ASSIGNED', json_object('reviewer', :reviewer)) as body;
