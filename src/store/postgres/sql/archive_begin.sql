-- archive_begin: no parameters
-- One snapshot for all pages of a month, and for its seal.
begin isolation level repeatable read, read only
