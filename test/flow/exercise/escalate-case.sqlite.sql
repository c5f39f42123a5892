select 200 as status, ibid_move('case', :case, 'ESCALATED', json_object('reason', :reason), :version) as body;
