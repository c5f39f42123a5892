-- machine_state_get: ?1 tenant, ?2 machine, ?3 subject id
select state, version, attributes
from ibid_machine_state
where tenant = ?1 and machine = ?2 and subject_id = ?3
