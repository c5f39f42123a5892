select 200 as status, ibid.move('case', :case, 'ESCALATED', jsonb_build_object('reason', :reason), :version) as body;
