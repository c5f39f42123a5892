select ibid_reject('NO_SUCH_CASE', 404, 'there is no such case')
  where not exists (select 1 from kase where tenant = :tenant and id = :case);
update kase set reviewer = :reviewer where tenant = :tenant and id = :case;
select ibid_emit('case', :case, 'ReviewerAssigned', json_object('reviewer', :reviewer));
select 200 as status, 'case' as resource_type, :case as resource_id;
