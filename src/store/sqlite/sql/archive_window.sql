-- archive_window: ?1 behind this seq, ?2 before that one, ?3 at most
select min(seq), max(seq), count(*) from (
  select seq from ibid_event where seq > ?1 and seq < ?2 order by seq limit ?3)
