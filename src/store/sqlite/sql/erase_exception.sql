-- erase_exception: ?1 tenant, ?2 actor
update ibid_exception set detail = null, note = null, service_answer = null, source = iif(?2 is null or source is null, source, 'erased')
where tenant = ?1 and subject_type = 'command' and subject_id in (select command_id from ibid_erasing)
  and (detail is not null or note is not null or ?2 is not null and source not in ('', 'erased'))
