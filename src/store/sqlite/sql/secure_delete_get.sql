-- secure_delete_get: one row, 0 for off.
pragma secure_delete
