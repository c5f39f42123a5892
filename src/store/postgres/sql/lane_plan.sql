-- lane_plan: no parameters
-- For lane_read, in its trip. A plan is made once and kept, maybe while a month's partition is still empty: by the index, in
-- its order, is right at any size, and planning takes longer than reading.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('jit', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true)
