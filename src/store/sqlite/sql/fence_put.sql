-- fence_put: writes one page, whatever it holds (I7).
insert into ibid_fence (one, count) values (1, 1)
on conflict do update set count = count + 1
