-- answer_delete: ?1 tenant, ?2 command_id
-- A replaced outcome takes its body with it.
delete from ibid_answer where tenant = ?1 and command_id = ?2
