-- secure_delete_on: one row, the new value.
pragma secure_delete = on
