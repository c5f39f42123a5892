/* SPDX-License-Identifier: Apache-2.0 */
/* options.h -- the options of all subcommands, in one table, and how a command line is read. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BIT(n) (UINT64_C(1) << (n))

/* X(symbol, name, value, environment, meaning). A NULL value makes it a switch; the environment
 * variable stands in where the option is not given. */
#define CLI_OPTIONS(X)                                                                             \
	X(STORE, "store", "URL", "IBID_STORE", "sqlite:PATH or postgres://USER@HOST/DATABASE")         \
	X(CONTRACTS, "contracts", "DIR", "IBID_CONTRACTS", "directory of contract files")              \
	X(CONFIG, "config", "FILE", "IBID_CONFIG",                                                     \
	  "settings in YAML; `ibid help settings` lists them")                                         \
	X(UPSTREAM, "upstream", "URL", NULL, "the service behind the server")                          \
	X(METRICS_LISTEN, "metrics-listen", "ADDR", NULL, "answer /metrics and /healthz there")        \
	X(DESTINATION, "destination", "NAME", NULL, "one destination (all of the settings)")           \
	X(TENANT, "tenant", "TENANT", NULL, "the tenant whose it is")                                  \
	X(OPERATION, "operation", "NAME", NULL, "the contract's name")                                 \
	X(KEY, "key", "KEY", NULL, "idempotency key, the same for every retry")                        \
	X(SCOPE, "scope", "PARTS", NULL,                                                               \
	  "whose key it is, where several used it: client=web,actor=u7")                               \
	X(STATE, "state", "STATE", NULL,                                                               \
	  "completed, rejected, failed, in_progress, unknown or accepted")                             \
	X(QUEUE, "queue", "QUEUE", NULL,                                                               \
	  "dead-letter, business, reconciliation, security or data-quality")                           \
	X(OWNER, "owner", "TEAM", NULL, "the team whose work it is")                                   \
	X(ASSIGNEE, "assignee", "NAME", NULL, "the person who works on it")                            \
	X(TO, "to", "NAME", NULL, "the person who is to work on it")                                   \
	X(ACTION, "action", "ACTION", NULL, "one of those that `exception show` lists")                \
	X(ANSWER, "answer", "JSON", NULL, "what duplicates get; @FILE reads it from a file")           \
	X(STATUS, "status", "N", NULL, "status of the answer, 200 to 399")                             \
	X(CLIENT, "client", "CLIENT", NULL, "sending client (cli)")                                    \
	X(ACTOR, "actor", "ACTOR", NULL, "acting person or service (the operating-system user)")       \
	X(RESOURCE, "resource", "RESOURCE", NULL,                                                      \
	  "what it acts on, where the contract's scope says so")                                       \
	X(SOURCE, "source", "SYSTEM", NULL, "the other system, as link_reference names it")            \
	X(EXTERNAL, "external", "ID", NULL, "what the other system calls the resource")                \
	X(TYPE, "type", "TYPE", NULL, "type of the resource")                                          \
	X(ID, "id", "ID", NULL, "id of the resource")                                                  \
	X(AGGREGATE, "aggregate", "TYPE/ID", NULL, "only events of this aggregate")                    \
	X(CORRELATION_ID, "correlation-id", "ID", NULL, "kept with the audit entry and the events")    \
	X(CAUSATION_ID, "causation-id", "ID", NULL, "likewise: what caused this command")              \
	X(TRACEPARENT, "traceparent", "TRACE", NULL,                                                   \
	  "likewise: W3C trace context, 00-<trace id>-<span id>-<flags>")                              \
	X(TRACESTATE, "tracestate", "STATE", NULL, "with --traceparent: the vendors' part")            \
	X(FORMAT, "format", "FORMAT", NULL, "text, markdown or json (text)")                           \
	X(LIMIT, "limit", "N", NULL, "rows at most, 1 to 1000 (50)")                                   \
	X(AFTER, "after", "ID", NULL, "only what is older than this one: the next page")               \
	X(DUPLICATES, "duplicates", NULL, NULL, "list those that were kept one by one, too")           \
	X(PAYLOAD, "payload", NULL, NULL, "what is kept of the payload, too")                          \
	X(KEY_FILE, "key-file", "FILE", "IBID_KEY_FILE",                                               \
	  "keys of encrypted payloads: `ID 64-HEX-DIGITS` a line")                                     \
	X(RESOURCE_TYPE, "resource-type", "TYPE", NULL,                                                \
	  "with --resource-id: all commands of a resource")                                            \
	X(RESOURCE_ID, "resource-id", "ID", NULL, "likewise")                                          \
	X(REASON, "reason", "TEXT", NULL, "why; kept in the record")                                   \
	X(BY, "by", "NAME", NULL, "who has it done (the operating-system user)")                       \
	X(ROLES, "roles", "ROLES", NULL,                                                               \
	  "client, operator, approver, admin, joined by commas (client)")                              \
	X(EXPIRES, "expires", "D", NULL, "how long it is valid: 12h, 90d (for ever)")                  \
	X(LIST, "list", NULL, NULL, "list the records of erasures, the newest first")                  \
	X(DRY_RUN, "dry-run", NULL, NULL, "only tell what would be done")                              \
	X(UNKNOWN, "unknown", NULL, NULL, "look again at what is UNKNOWN, too")                        \
	X(BATCH, "batch", "N", NULL, "rows in one transaction, 1 to 100000 (1000)")                    \
	X(MAX_SECONDS, "max-seconds", "N", NULL, "stop after this time; the next run goes on")         \
	X(EVENTS_OLDER_THAN, "events-older-than", "D", NULL,                                           \
	  "remove events of that age, too, once they are done: 90d")                                   \
	X(ARCHIVE, "archive", "DIR", NULL, "write events to this directory before they go")            \
	X(NO_ARCHIVE, "no-archive", NULL, NULL, "remove events and their evidence for good")           \
	X(EXPLAIN, "explain", NULL, NULL, "the exact bytes that are hashed, instead of their hash")    \
	X(JSON, "json", NULL, NULL, "one JSON object; for lists one per line")

enum option {
#define CLI_OPTION_ENUM(symbol, name, value, environment, meaning) OPT_##symbol,
	CLI_OPTIONS(CLI_OPTION_ENUM)
#undef CLI_OPTION_ENUM
	    OPT_COUNT
};
_Static_assert(OPT_COUNT <= 64, "sets of options are 64 bits");

struct option_spec {
	const char *name, *value, *environment, *meaning;
};
extern const struct option_spec option_specs[OPT_COUNT];

enum { OPERANDS_MAX = 16 };

struct cli_command;

/* A command line, taken apart. */
struct args {
	const struct cli_command *command;
	const char *values[OPT_COUNT]; /* NULL: not given; a switch that is set is "" */
	uint64_t from_environment;     /* BIT(OPT_...): of them, those that the command line lacks */
	const char *operands[OPERANDS_MAX];
	size_t operand_count;
	struct arena arena; /* of what the file of --config says */
};

/* Say that an option is needed, and how to give it; returns CLI_USAGE. */
int usage_missing(const struct args *args, enum option option);

void args_release(struct args *args);

static inline bool args_has(const struct args *args, enum option option)
{
	return args->values[option];
}

enum args_kind { ARGS_OK, ARGS_HELP, ARGS_BAD, ARGS_FAILED };

/* Read what stands after the command's name; release it in any case. ARGS_BAD: the person was told
 * what is wrong with the command line; ARGS_FAILED: with the file of --config. */
enum args_kind args_read(const struct cli_command *command, int argc, char *const *argv,
                         struct args *ret);

/* The one of the names that a slip of the fingers may have meant; NULL when none is near. */
const char *nearest(const char *given, const char *const *names, size_t count);

#endif
