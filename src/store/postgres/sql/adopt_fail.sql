-- adopt_fail: $1 command id, $2 text
select ibid.command_fail($1, $2)
