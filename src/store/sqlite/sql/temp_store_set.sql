-- temp_store_set: what a savepoint may have to undo stays in memory.
-- Each command of a group has one; beyond 64 KiB a group, SQLite would write the pages that it changes
-- to a file of its own first.
pragma temp_store = memory
