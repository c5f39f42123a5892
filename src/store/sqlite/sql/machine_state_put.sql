-- machine_state_put: ?1 tenant, ?2 machine, ?3 subject id, ?4 version, ?5 from state, ?6 to state,
-- ?7 attributes, ?8 command id, ?9 time
-- Changes nothing unless the subject is where the move begins.
insert into ibid_machine_state (tenant, machine, subject_id, state, version, attributes, command_id, at_us)
values (?1, ?2, ?3, ?6, ?4, ?7, ?8, ?9)
on conflict do update set state = ?6, version = ?4, attributes = ?7, command_id = ?8, at_us = ?9
where version = ?4 - 1 and state = ?5
