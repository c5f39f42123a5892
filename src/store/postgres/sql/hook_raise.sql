-- hook_raise: sent in the place of a statement that a test's hook fails (store/hook.h)
do $$ begin raise exception 'injected fault' using errcode = 'io_error'; end $$
