-- machine_move_clear: ?1 machine
delete from ibid_machine_move
where machine = ?1
