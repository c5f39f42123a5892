-- wal_set: one row, the journal mode that the file has now.
pragma journal_mode = wal
