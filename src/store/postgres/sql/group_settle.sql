-- group_settle: no parameters
-- What a member left for the end of the transaction is checked now, on its own account.
select ibid_internal.group_settle()
