-- adopt_keep: what was written since adopt_mark stays, if the caller commits.
release savepoint ibid_adopt
