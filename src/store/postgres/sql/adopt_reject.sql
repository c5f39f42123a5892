-- adopt_reject: $1 command id, $2 reason, $3 status, $4 text
select ibid.command_reject($1, $2, $3, $4)
