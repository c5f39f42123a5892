-- answer_put: ?1 tenant, ?2 command_id, ?3 body
insert into ibid_answer (tenant, command_id, body)
values (?1, ?2, ?3)
on conflict do update set body = excluded.body
