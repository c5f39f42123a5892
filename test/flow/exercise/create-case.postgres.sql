select ibid.move('case', :case, 'OPEN') where ibid.find_reference(:system, :number) is null;
select ibid.link_reference(:system, :number, 'case', :case);
select 201 as status, 'case' as resource_type, :case as resource_id;
