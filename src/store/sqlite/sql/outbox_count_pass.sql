-- outbox_count_pass: ?1 destination, ?2 lane, ?3 cursor, ?4 events up to that
update ibid_outbox_count set behind = ?3, passed = ?4 where destination = ?1 and lane = ?2
