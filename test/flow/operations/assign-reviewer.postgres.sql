select ibid.reject('NO_SUCH_CASE', 404, 'there is no such case')
  where not exists (select 1 from kase where tenant = :tenant and id = :case);
update kase set reviewer = :reviewer where tenant = :tenant and id = :case;
select ibid.emit('case', :case, 'ReviewerAssigned', jsonb_build_object('reviewer', :reviewer));
select 200 as status, 'case' as resource_type, :case as resource_id;
