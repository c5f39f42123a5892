-- check_deferred: no parameters
-- Deferred constraints fail here, by name, and not as a commit of unclear outcome.
set constraints all immediate
