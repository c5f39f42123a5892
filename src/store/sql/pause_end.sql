-- pause_end
-- demands one row: it is not paused
delete from ibid.pause
where tenant = :tenant and kind = :kind and name = :name
