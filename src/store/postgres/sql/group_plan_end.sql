-- group_plan_end: no parameters
-- Scripts are planned as they are elsewhere.
set local plan_cache_mode to default
