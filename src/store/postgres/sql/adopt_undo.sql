-- adopt_undo: back to adopt_mark, which stays until it is released.
rollback to savepoint ibid_adopt
