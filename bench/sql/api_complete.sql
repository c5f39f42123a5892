-- api_complete: $1 command's id, $2 payment's id
select ibid.command_complete($1, status => 201, resource_type => 'payment', resource_id => $2)
