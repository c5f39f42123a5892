-- lease_renew: ?1 tenant, ?2 id, ?3 token, ?4 until
-- Changes no row when the token is no longer the one that holds the command (I6).
update ibid_command set lease_until_us = ?4
where tenant = ?1 and id = ?2 and state = 'IN_PROGRESS' and lease_token = ?3
