-- wal_autocheckpoint_get: one row, pages in the WAL from which a commit checkpoints; 0: never.
pragma wal_autocheckpoint
