-- erasure_finish: ?1 tenant, ?2 id, ?3 now_us
update ibid_erasure set finished_us = ?3 where tenant = ?1 and id = ?2
