/* SPDX-License-Identifier: Apache-2.0 */
/* hook.h -- where a test sees each statement of a store, and makes one fail.
 *
 * Both engines ask the hook at the lowest place that every statement passes, so that a statement is
 * covered without a line for it, and what fails is met by the engine's own handling of errors. The
 * hook may block, and it may end the process; nothing here does. A store has no hook unless a test
 * sets one, and statements may run on any thread. */
#ifndef STORE_HOOK_H
#define STORE_HOOK_H

#include <stdbool.h>

/* On SQLite a statement fails with an I/O error, before or after its first step: the commit leaves
 * an unknown outcome either way (I7). On PostgreSQL statements travel together, and what is lost is
 * their connection. */
enum hook_kind {
	HOOK_BEFORE, /* it is about to run. PostgreSQL: one that raises is sent in its place */
	HOOK_FLUSH,  /* PostgreSQL: a trip that ends with it is about to be sent. It is not */
	HOOK_SENT,  /* PostgreSQL: and was sent; nothing was read. The server may still run all of it */
	HOOK_AFTER, /* it ran. PostgreSQL: its result was read, what comes behind it is lost */
};

struct hook_point {
	const char *engine;    /* "sqlite", "postgres" */
	const char *statement; /* the name of its .sql file; "script" where a handler's runs */
	enum hook_kind kind;
};

struct hook {
	bool (*at)(void *user, const struct hook_point *point); /* true: fail here */
	void *user;
};

#endif
