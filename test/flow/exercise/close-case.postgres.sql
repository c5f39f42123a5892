select 200 as status, ibid.move('case', :case, 'CLOSED', jsonb_build_object('reason', :reason)) as body;
