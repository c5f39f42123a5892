/* SPDX-License-Identifier: Apache-2.0 */
/* api.h -- what stands behind the handles of ibid.h, for the binary and the tests. */
#ifndef API_API_H
#define API_API_H

#include "command/ledger.h"

struct ibid {
	struct ledger *ledger;
};

/* Where a store or the surroundings are put in the place of the real ones. */
struct api_seams {
	struct env *env;                                        /* NULL: the system's */
	struct store *(*wrap)(void *user, struct store *store); /* NULL: none */
	void *user;
	bool checks_scripts; /* refuse scripts that the store can't prepare: see script_check.h */
};

IBID_CHECK enum ibid_code api_open(const struct ibid_options *options,
                                   const struct api_seams *seams, struct ibid **ret,
                                   struct ibid_err *err);

/* What ibid_init did. */
struct init_report {
	int schema_from, schema_to;
	bool has_file; /* the directory holds schema.STORE.sql */
	enum schema_state file;
	size_t contracts;
};

IBID_CHECK enum ibid_code api_init(const struct ibid_options *options,
                                   const struct api_seams *seams, struct init_report *ret,
                                   struct ibid_err *err);

/* The options with their defaults, and what a store needs of them. */
struct ibid_options api_options(const struct ibid_options *given);
struct store_options api_store_options(const struct ibid_options *options, struct env *env,
                                       bool create);

#endif
