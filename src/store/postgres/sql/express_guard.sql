-- express_guard: $1 the new command's id
-- Stops the trip unless the identity was free: claim_find puts the id of a row it finds in the place of
-- the new one, and claim_lock tells whether it gained the lock. A division by zero is the cheapest error.
select 1 / (current_setting('ibid.command_id') = $1::text and current_setting('ibid.locked') = 'true')::int
