/* SPDX-License-Identifier: Apache-2.0 */
/* script.h -- split a SQL script into statements and find its named parameters.
 *
 * Quotes, quoted identifiers, dollar quotes, nested comments, casts (::) and array slices are
 * respected. What would end the transaction or change the session is refused before anything is
 * sent. */
#ifndef STORE_SCRIPT_H
#define STORE_SCRIPT_H

#include "store/store.h"

enum script_dialect { DIALECT_SQLITE, DIALECT_POSTGRES };

struct script_statement {
	const char *sql; /* PostgreSQL: parameters written as $1, $2, ...; SQLite: as in the file */
	int line;        /* of its first token in the file */
	size_t *params;  /* PostgreSQL: $n is params[n - 1], an index into the specs; SQLite: those it
	                    uses */
	size_t param_count;
	bool sets;         /* PostgreSQL: SET, which holds to the end of the transaction */
	bool makes;        /* tables or the like, maybe: what a later statement needs */
	bool leaves_state; /* PostgreSQL: it may leave something in the session after the transaction */
};

struct script_statements {
	struct script_statement *items;
	size_t count;
};

/* Does the statement call ibid.reject, or ibid_reject? Where it does, it need not answer. */
bool script_rejects(const struct script_statement *statement);

/* A finding about a script that answers although its contract does. */
extern const char script_answers_twice[];

/* A finding of prepare_scripts about this place: "file:line: ...". */
void script_learn(const char *file, int line, enum finding_level level, finding_fn *fn, void *user,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));

/* IBID_CONTRACT with "file:line: ..." when something is refused. Everything lives in `arena`. */
IBID_CHECK enum ibid_code script_split(struct arena *arena, enum script_dialect dialect,
                                       const char *file, const char *text,
                                       const struct param_spec *params, size_t count,
                                       struct script_statements *ret, struct ibid_err *err);

#endif
