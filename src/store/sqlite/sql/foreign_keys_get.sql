-- foreign_keys_get: one row, 1 for on.
pragma foreign_keys
