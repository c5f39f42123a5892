select ibid_reject('NO_SUCH_CASE', 404, 'there is no such case')
  where not exists (select 1 from kase where tenant = :tenant and id = :case);
update kase set closed_reason = :reason where tenant = :tenant and id = :case;
select ibid_emit('case', :case, 'CaseClosed', json_object('reason', :reason));
select 200 as status, 'case' as resource_type, :case as resource_id;
