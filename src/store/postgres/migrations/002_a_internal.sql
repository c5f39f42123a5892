-- 002_a_internal: what callers have no business with. The first file of schema 2.
--
-- Schema ibid holds what people and programs call, select from and grant; ibid_internal the functions that these are
-- made of. Six of schema 1 stay in ibid until schema 3, because the binaries of schema 1 call them there.

create schema ibid_internal;
comment on schema ibid_internal is 'what the functions of schema ibid are made of: nothing here is for callers, and all may change';
