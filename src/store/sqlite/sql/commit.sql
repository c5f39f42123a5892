-- commit: returns after the WAL is on disk (synchronous = full, I10).
commit
