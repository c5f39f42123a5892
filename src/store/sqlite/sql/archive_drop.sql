-- archive_drop: ?1 seq
-- Its evidence goes with it.
delete from ibid_event where seq = ?1
