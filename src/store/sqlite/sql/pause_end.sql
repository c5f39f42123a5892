-- pause_end: ?1 tenant, ?2 kind, ?3 name
delete from ibid_pause where tenant = ?1 and kind = ?2 and name = ?3
