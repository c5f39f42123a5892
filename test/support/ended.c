/* SPDX-License-Identifier: Apache-2.0 */
#include "support/ended.h"

int ended_times;
void (*lost_meanwhile)(void);

static struct store_ops ops;
static const struct store_ops *plain;

static enum ibid_code commit(struct tx **tx, struct arena *arena, struct outcome *ret,
                             struct ibid_err *err)
{
	void (*meanwhile)(void) = lost_meanwhile;
	if (meanwhile) {
		lost_meanwhile = NULL;
		plain->rollback(tx);
		meanwhile();
		return err_set(err, IBID_UNKNOWN, "the test lost the commit");
	}
	if (ended_times <= 0)
		return plain->commit(tx, arena, ret, err);
	ended_times--;
	plain->rollback(tx);
	return err_set(err, IBID_MISUSE, "the handler ended the transaction");
}

struct store *ended_wrap(void *user, struct store *store)
{
	(void)user;
	plain = store->ops;
	ops = *plain;
	ops.commit = commit;
	store->ops = &ops;
	return store;
}
