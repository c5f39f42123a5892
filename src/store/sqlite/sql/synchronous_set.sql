-- synchronous_set: every commit syncs the WAL (I10).
pragma synchronous = full
