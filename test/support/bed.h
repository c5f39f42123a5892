/* SPDX-License-Identifier: Apache-2.0 */
/* bed.h -- a test bed: one fresh database, one directory of contracts, and a way to look into both
 * from outside. Every bed has its own directory and database, so tests run side by side. */
#ifndef TEST_BED_H
#define TEST_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/api.h"

enum bed_kind { BED_SQLITE, BED_POSTGRES };

struct bed {
	enum bed_kind kind;
	char dir[64]; /* of the bed, removed at the end */
	char contracts[128];
	char url[256];
	char database[64]; /* PostgreSQL */
};

/* The backend that this test program was asked to run on (argv[1]: sqlite or postgres). */
extern enum bed_kind bed_kind;
void bed_choose(int argc, char **argv);

/* Fresh database, contracts copied from `fixture` (a directory of the source tree), initialised. */
void bed_open(struct bed *bed, const char *fixture);
/* The same without ibid_init. */
void bed_open_empty(struct bed *bed, const char *fixture);
void bed_close(struct bed *bed);

/* Open the library on it; fails the test when that fails. */
struct ibid *bed_ibid(const struct bed *bed, const struct api_seams *seams);

/* SQL from outside. "ibid." becomes "ibid_" on SQLite, so that one text serves both. */
void bed_exec(const struct bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t bed_number(const struct bed *bed, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Wait until no client is connected any more: a server may still run what a dead client had sent.
 * `since`: only clients that connected after bed_mark. */
void bed_settle(const struct bed *bed);
int64_t bed_mark(const struct bed *bed);
void bed_settle_since(const struct bed *bed, int64_t since);

/* The database must refuse it with an error that contains `part`. */
void bed_refuses(const struct bed *bed, const char *sql, const char *part);

/* Write a file of the bed's contracts directory. */
void bed_write(const struct bed *bed, const char *name, const char *text);

/* Change a text that stands once in a file of the contracts directory. */
void bed_replace(const struct bed *bed, const char *name, const char *from, const char *to);
/* Remove every contract but those listed (NULL ends the list). */
void bed_keep_contracts(const struct bed *bed, const char *const *names);
void bed_init(const struct bed *bed); /* ibid_init */

/* ---- Submitting ----------------------------------------------------------------------------- */

/* tenant t, client c; fails the test on an error. The caller frees the result. */
struct ibid_result *bed_submit(struct ibid *ibid, const char *operation, const char *key,
                               const char *payload);

/* Decision, replayed and status in one line: "executed 201", "replayed executed 201". */
const char *bed_say(const struct ibid_result *result);

/* Submit, compare what bed_say says, free. */
void bed_expect(struct ibid *ibid, const char *operation, const char *key, const char *payload,
                const char *expected);

#endif
