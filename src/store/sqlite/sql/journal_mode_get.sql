-- journal_mode_get: one row, "wal" or another name.
pragma journal_mode
