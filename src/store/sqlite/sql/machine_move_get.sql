-- machine_move_get: ?1 machine, ?2 from state, ?3 to state
-- Is the machine defined, and is the move allowed?
select exists (select 1 from ibid_machine_move where machine = ?1),
  exists (select 1 from ibid_machine_move where machine = ?1 and from_state = ?2 and to_state = ?3)
