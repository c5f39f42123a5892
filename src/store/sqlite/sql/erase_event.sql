-- erase_event: ?1 tenant
update ibid_event set payload = '{"erased":true}'
where seq in (
  select e.seq from ibid_erasing as s join ibid_event as e on e.tenant = ?1
    and e.id between substr(s.command_id, 1, 32) || '0000' and substr(s.command_id, 1, 32) || 'ffff'
    and e.command_id = s.command_id
  where e.payload <> '{"erased":true}')
