-- adopt_complete: $1 command id, $2 status, $3 body, $4 resource type, $5 resource id, $6 linked
select ibid.command_complete($1, $2, $3, $4, $5, $6)
