-- synchronous_get: one row, 2 for full.
pragma synchronous
