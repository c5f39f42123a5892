select 200 as status, ibid_move('case', :case, 'CLOSED', json_object('reason', :reason)) as body;
