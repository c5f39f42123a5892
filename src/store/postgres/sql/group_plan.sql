-- group_plan: no parameters
-- What follows is planned once: with arrays the server would otherwise plan at every call, which costs
-- more than it runs.
set local plan_cache_mode = force_generic_plan
