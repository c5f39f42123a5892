-- adopt_mark: around what ibid writes in a transaction of the caller's. One of the caller's with the same
-- name is not touched: the innermost counts.
savepoint ibid_adopt
