-- erasure_put: ?1 tenant, ?2 id, ?3 by, ?4 reason, ?5 selection, ?6 at_us, ?7 commands, ?8 payloads, ?9 bodies,
-- ?10 texts, ?11 events, ?12 names, ?13 exceptions
-- Steps of one erasure are counted together.
insert into ibid_erasure (tenant, id, by, reason, selection, at_us, commands, payloads, bodies, texts, events,
  names, exceptions)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
on conflict do update set commands = commands + ?7, payloads = payloads + ?8, bodies = bodies + ?9,
  texts = texts + ?10, events = events + ?11, names = names + ?12, exceptions = exceptions + ?13
