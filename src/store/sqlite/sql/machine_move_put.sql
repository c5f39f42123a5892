-- machine_move_put: ?1 machine, ?2 from state, ?3 to state
insert into ibid_machine_move (machine, from_state, to_state)
values (?1, ?2, ?3)
on conflict do nothing
