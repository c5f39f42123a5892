-- group_savepoint: what the next member of a group does is behind it.
savepoint member
