-- rollback: no parameters
rollback
