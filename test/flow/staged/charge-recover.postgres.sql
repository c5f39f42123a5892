-- What is known of a charge whose worker went silent.
select ibid.reject('NOT_DONE', 404, 'the charge was never sent')
from charge where command_id = :command_id::text and state = 'not sent';

select ibid.reject('DECLINED', 409, 'the card was declined')
from charge where command_id = :command_id::text and state = 'declined';

select ibid.emit('charge', command_id, 'Charged', '{}')
from charge where command_id = :command_id::text and state = 'done';

select 201 as status, json_build_object('id', command_id) as body, 'charge' as resource_type,
  command_id as resource_id
from charge where command_id = :command_id::text and state = 'done';
