-- answer_delete: $1 tenant, $2 command id
-- Of a command that gave its place to another: after command_replace.
select ibid_internal.forget_answers($1, $2)
