/* SPDX-License-Identifier: Apache-2.0 */
/* contracts.h -- a complete contract as lines, and directories to put mutants of it into. */
#ifndef UNIT_CONTRACTS_H
#define UNIT_CONTRACTS_H

#include "unit.h"

#include "base/str.h"
#include "contract/contract.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const good_lines[] = {
    /* 1 */ "command: create-payment",
    /* 2 */ "version: 1",
    /* 3 */ "fact: a payment order is accepted",
    /* 4 */ "owner: payments",
    /* 5 */ "strategy: key",
    /* 6 */ "route: POST /payments",
    /* 7 */ "key:",
    /* 8 */ "  from: header",
    /* 9 */ "  generated_by: client",
    /* 10 */ "  scope: [client]",
    /* 11 */ "  retain: 400d",
    /* 12 */ "  after_expiry: refuse",
    /* 13 */ "fields:",
    /* 14 */ "  /from:     { type: text, required: true, max: 34 }",
    /* 15 */ "  /to:       { type: text, required: true, max: 34 }",
    /* 16 */ "  /amount:   { type: decimal, required: true, above: 0, scale: 2 }",
    /* 17 */ "  /currency: { type: text, required: true, one_of: [EUR, USD, CHF] }",
    /* 18 */ "  /note:     { type: text, max: 140, class: redact }",
    /* 19 */ "unknown_fields: keep",
    /* 20 */ "same_payload:",
    /* 21 */ "  ignore: [/requestedAt]",
    /* 22 */ "  instants: [/valueDate]",
    /* 23 */ "  unordered: []",
    /* 24 */ "  context: [actor]",
    /* 25 */ "duplicates:",
    /* 26 */ "  completed: replay",
    /* 27 */ "  rejected: replay",
    /* 28 */ "  rejected_other_payload: conflict",
    /* 29 */ "  in_progress: answer",
    /* 30 */ "  other_payload: conflict",
    /* 31 */ "  by_source:",
    /* 32 */ "    client: replay",
    /* 33 */ "    service: replay",
    /* 34 */ "    broker: skip",
    /* 35 */ "    replay: skip",
    /* 36 */ "    human: show",
    /* 37 */ "  evidence: count",
    /* 38 */ "failures:",
    /* 39 */ "  validation: final",
    /* 40 */ "  business: final",
    /* 41 */ "  server: retry",
    /* 42 */ "answer:",
    /* 43 */ "  store: full",
    /* 44 */ "audit:",
    /* 45 */ "  retain: 10y",
    /* 46 */ "unique:",
    /* 47 */ "  payment_reference: { on_duplicate: link, find: by-reference.$store.sql }",
    /* 48 */ "serialize_by: [/from]",
    /* 49 */ "emits: [PaymentCreated]",
    /* 50 */ "covers: [payment row, ledger entries, PaymentCreated]",
    /* 51 */ "reconciled_by: bank-statement",
    /* 52 */ "corrected_by: reverse-payment",
    /* 53 */ "handler: { sql: create-payment.$store.sql }",
};

enum { DIR_TEXT_MAX = 64, MUTANT_BYTES_MAX = 4 << 20 };

static inline void dir_write_bytes(const char *dir, const char *name, const char *bytes,
                                   size_t size)
{
	char path[DIR_TEXT_MAX + 300];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static inline void dir_write(const char *dir, const char *name, const char *text)
{
	dir_write_bytes(dir, name, text, strlen(text));
}

/* A directory with the scripts that the good contract names. */
static inline void dir_open(char ret[DIR_TEXT_MAX])
{
	snprintf(ret, DIR_TEXT_MAX, "/tmp/ibid-contracts-XXXXXX");
	assert_non_null(mkdtemp(ret));
	dir_write(ret, "create-payment.sqlite.sql", "select 201 as status;\n");
	dir_write(ret, "by-reference.postgres.sql", "select 1;\n");
}

static inline void dir_close(const char *dir)
{
	DIR *open = opendir(dir);
	assert_non_null(open);
	for (struct dirent *entry; (entry = readdir(open));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			assert_int_equal(unlinkat(dirfd(open), entry->d_name, 0), 0);
	closedir(open);
	assert_int_equal(rmdir(dir), 0);
}

/* The good contract with line `line` (0: none) replaced by `text`, or deleted when it is NULL. The
 * caller releases it. */
static inline struct str mutant(int line, const char *text)
{
	struct str out = STR_INIT(MUTANT_BYTES_MAX);
	for (size_t i = 0; i < COUNT(good_lines); i++) {
		const char *content = (int)i + 1 == line ? text : good_lines[i];
		if (content)
			str_addf(&out, "%s\n", content);
	}
	return out;
}

static inline void dir_write_mutant(const char *dir, const char *name, int line, const char *text)
{
	struct str content = mutant(line, text);
	dir_write(dir, name, str_text(&content));
	str_release(&content);
}

#endif
