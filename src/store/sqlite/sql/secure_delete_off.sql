-- secure_delete_off: one row, the new value.
pragma secure_delete = off
