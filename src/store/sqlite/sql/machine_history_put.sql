-- machine_history_put: ?1 tenant, ?2 machine, ?3 subject id, ?4 version, ?5 from state, ?6 to state,
-- ?7 attributes, ?8 command id, ?9 time
insert into ibid_machine_history
  (tenant, machine, subject_id, version, from_state, to_state, attributes, command_id, at_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
