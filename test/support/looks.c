/* SPDX-License-Identifier: Apache-2.0 */
#include "support/looks.h"

static struct store_ops ops;
static const struct store_ops *plain;
static look_fn *tell;
static void *tell_user;

static enum ibid_code told(enum look look, enum ibid_code code)
{
	tell(tell_user, look, true, code);
	return code;
}

static enum ibid_code claim(struct store *store, struct arena *arena,
                            const struct identity *identity, const struct work_context *context,
                            struct claim *ret, struct ibid_err *err)
{
	tell(tell_user, LOOK_ALONE, false, IBID_OK);
	return told(LOOK_ALONE, plain->claim(store, arena, identity, context, ret, err));
}

static enum ibid_code run_group(struct store *store, struct group_member **members, size_t count,
                                struct ibid_err *err)
{
	enum look look = count == 1 ? LOOK_ALONE : LOOK_GROUP;
	tell(tell_user, look, false, IBID_OK);
	return told(look, plain->run_group(store, members, count, err));
}

struct store *looks_wrap(struct store *store, look_fn *fn, void *user)
{
	plain = store->ops;
	ops = *plain;
	ops.claim = claim;
	ops.run_group = run_group;
	store->ops = &ops;
	tell = fn;
	tell_user = user;
	return store;
}
