-- group_undo: nothing of the member's work stays; the savepoint itself does.
rollback to member
