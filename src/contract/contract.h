/* SPDX-License-Identifier: Apache-2.0 */
/* contract.h -- the declared policy for one kind of intent.
 *
 * A contract is read once, checked completely, and immutable after that. Kind, name and version are
 * its identity; its `text` (canonical JSON of every answer, inherited ones included) is what the
 * store keeps, and reading that text gives the same contract again. */
#ifndef CONTRACT_CONTRACT_H
#define CONTRACT_CONTRACT_H

#include "base/arena.h"
#include "base/decimal.h"
#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stdint.h>

enum contract_kind { CONTRACT_COMMAND, CONTRACT_EVENT };

enum contract_strategy {
	STRATEGY_NATURAL,
	STRATEGY_SET_ONCE,
	STRATEGY_UNIQUE,
	STRATEGY_KEY,
	STRATEGY_INBOX,
	STRATEGY_VERSION,
	STRATEGY_COMMUTATIVE,
	STRATEGY_EXTERNAL,
	STRATEGY_NONE,
	STRATEGY_COUNT
};

/* A list of texts, in the order of the file. */
struct texts {
	const char **items;
	size_t count;
};

enum field_type {
	FIELD_TEXT,
	FIELD_INTEGER,
	FIELD_DECIMAL,
	FIELD_BOOLEAN,
	FIELD_DATE,
	FIELD_INSTANT,
	FIELD_JSON
};
enum field_class {
	CLASS_STORE,
	CLASS_REDACT,
	CLASS_ENCRYPT,
	CLASS_OMIT,
	CLASS_INHERIT, /* the default of a field: the contract's `payload` */
};

/* One declared member of the payload. */
struct contract_field {
	const char *pointer; /* "/amount" */
	const char *name; /* of the parameter: "amount"; "/a/b" is "a_b" unless `as` says otherwise */
	enum field_type type;
	bool required;
	size_t max; /* text: characters (code points) at most; 0: no limit */
	struct decimal *above, *at_least, *below, *at_most; /* integer, decimal; NULL: open */
	int scale;           /* decimal: digits after the point at most; -1: DECIMAL_SCALE_MAX */
	struct texts one_of; /* text: allowed values; empty: any */
	enum field_class class;
};

enum key_from { KEY_HEADER, KEY_FIELDS };
enum key_form { KEY_FORM_TEXT, KEY_FORM_UUID };
enum scope_part {
	SCOPE_CLIENT = 1,
	SCOPE_ACTOR = 2,
	SCOPE_RESOURCE = 4
}; /* bits; also `context` */

struct contract_key {
	enum key_from from;
	struct texts fields; /* KEY_FIELDS: pointers, in order */
	enum key_form form;  /* KEY_FIELDS: the values as canonical JSON array, or a UUIDv5 of it */
	const char *generated_by;
	unsigned scope;                      /* SCOPE_ bits */
	int64_t retain_us, replay_window_us; /* replay window 0: not declared */
	enum { EXPIRY_REFUSE, EXPIRY_RUN_AGAIN } after_expiry;
};

/* What "the same payload" means. Pointers may hold `*` for every item or member at that place. */
struct contract_default {
	const char *pointer;
	const char *json; /* canonical JSON of the value that a missing member stands for */
};
struct contract_same {
	struct texts ignore, only, instants, unordered;
	struct contract_default *defaults;
	size_t default_count;
	bool nfc;         /* compare strings and member names in Unicode NFC */
	unsigned context; /* SCOPE_ bits that enter the fingerprint */
};

struct contract_duplicates {
	enum { COMPLETED_REPLAY } completed;
	enum { REJECTED_REPLAY, REJECTED_EVALUATE_AGAIN } rejected;
	enum { REJECTED_OTHER_CONFLICT, REJECTED_OTHER_EVALUATE } rejected_other_payload;
	enum { PROGRESS_ANSWER, PROGRESS_ACCEPTED, PROGRESS_WAIT } in_progress;
	int64_t wait_us; /* PROGRESS_WAIT */
	enum { OTHER_CONFLICT } other_payload;
	const char *by_source[5]; /* client, service, broker, replay, human */
	enum { EVIDENCE_COUNT, EVIDENCE_EACH } evidence;
};

enum answer_store { ANSWER_FULL, ANSWER_REFERENCE, ANSWER_STATUS, ANSWER_NONE };

/* A unique index in the user's schema that protects the business fact. */
struct contract_unique {
	const char *name; /* of the index or constraint */
	enum { UNIQUE_LINK, UNIQUE_REJECT } on_duplicate;
	const char *find; /* script file; may contain $store */
};

/* Work that is done outside any transaction, between claiming the command and finishing it. */
struct contract_staged {
	int64_t lease_us;                                               /* 0: not staged */
	enum { RECOVER_HUMAN, RECOVER_INQUIRY, RECOVER_QUERY } recover; /* when the lease has ended */
	const char *query; /* RECOVER_QUERY: script file; may contain $store */
};

/* How the service is asked for the outcome of a call that got no answer. */
struct contract_inquiry {
	const char *url;   /* a path on the service or an http address, with {external_key},
	                      {command_id} and {tenant} in path and query; NULL: it can't be asked */
	int executed;      /* the status, 2xx: done; this answer becomes the command's */
	int not_executed;  /* the status that means: not done; believed after `settle` */
	int64_t settle_us; /* how long after a call the service may still execute it; 0: not at all */
	int64_t backoff_min_us, backoff_max_us; /* between two inquiries */
	int64_t give_up_us;                     /* then a person has to find out */
};

/* handler: upstream. The work is a request that is forwarded to another service. */
struct contract_upstream {
	bool given; /* false: the rest is zero */
	int64_t deadline_us;
	int64_t wait_us; /* at most the deadline; 0: the caller does not wait */
	enum { UPSTREAM_WITHOUT_KEY_REFUSE, UPSTREAM_WITHOUT_KEY_PASS } without_key;
	enum { UPSTREAM_CONFLICT_KEEP, UPSTREAM_CONFLICT_RETRY } conflict; /* its 409 */
	enum {
		UPSTREAM_ERROR_KEEP,
		UPSTREAM_ERROR_RETRY,
		UPSTREAM_ERROR_UNKNOWN
	} error; /* its 5xx; a 503 is always a retry */
	enum {
		UPSTREAM_UNKNOWN_ERROR,
		UPSTREAM_UNKNOWN_ACCEPTED
	} unknown;            /* the answer while the outcome is unknown: 502 or 504, or 202 */
	struct texts headers; /* of its answer, kept beside Content-Type; as written in the contract */
	struct contract_inquiry inquiry;
};

/* strategy: version. The versions of the state that a command may make. */
struct contract_guard {
	const char *version; /* pointer to the field that holds the command's; NULL: no guard */
	enum { GUARD_NEXT, GUARD_NEWER } apply;
	enum { STALE_LINK, STALE_REJECT } stale; /* what happens to a version older than the state's */
};

/* ---- What is made of parameters ------------------------------------------------------------- */

/* The parameters that every script and template has, in this order; behind them come the contract's
 * fields. */
#define BUILTIN_PARAMS(X)                                                                          \
	X(tenant) X(key) X(actor) X(client) X(now) X(command_id) X(resource) X(payload)
enum builtin_param {
#define BUILTIN_PARAM_ENUM(name) BUILTIN_##name,
	BUILTIN_PARAMS(BUILTIN_PARAM_ENUM)
#undef BUILTIN_PARAM_ENUM
	    BUILTIN_PARAM_COUNT
};
const char *builtin_param_name(enum builtin_param param);

/* JSON in pieces: constants, and holes that a parameter fills. */
struct template_piece {
	enum { PIECE_CONSTANT, PIECE_TEXT, PIECE_NUMBER, PIECE_JSON } kind;
	const char *text; /* PIECE_CONSTANT: canonical JSON, or a part of it */
	size_t param;     /* of the others */
};
struct template
{
	struct template_piece *pieces;
	size_t count; /* 0: not declared */
};

/* One text. */
struct contract_value {
	const char *text; /* a constant; NULL: the parameter's, or not declared */
	size_t param;
	bool given;
};

/* An event that is emitted whenever the command succeeds. */
struct contract_emit {
	const char *type, *aggregate_type; /* aggregate_type NULL: that of the event's contract */
	struct contract_value aggregate_id, version, key;
	struct template payload;
};

/* The answer of a success. */
struct contract_answer {
	int status;                /* 0: not declared, the handler gives it */
	struct template body;      /* may be left out */
	const char *resource_type; /* NULL: none */
	struct contract_value resource_id;
};

/* A condition under which the command is refused before its handler runs. */
enum relation {
	RELATION_EQUALS,
	RELATION_NOT_EQUALS,
	RELATION_BELOW,
	RELATION_AT_MOST,
	RELATION_ABOVE,
	RELATION_AT_LEAST,
};
enum refusal_class { REFUSAL_VALIDATION, REFUSAL_BUSINESS, REFUSAL_SERVER, REFUSAL_CLASSES };
struct contract_reject {
	struct contract_value left, right;
	enum field_type type; /* by which both are compared */
	enum relation relation;
	enum refusal_class class;
	const char *code, *text;
	int status;
};

/* Rows that each statement of the script returns, or changes. */
enum { ROWS_ANY = -1 };
struct contract_rows {
	int64_t *items; /* or ROWS_ANY */
	size_t count;   /* 0: not declared */
};

struct event_contract; /* event.h */

/* A contract of any kind. The members between `owner` and `event` belong to commands. */
struct contract {
	enum contract_kind kind;
	const char *name;
	int version;
	const char *file;                 /* "create-payment.yaml"; "" when read from a store */
	const char *fact, *owner, *route; /* route: "" when none */
	enum contract_strategy strategy;
	const char *because;         /* strategy: none; NULL otherwise */
	const char *already, *state; /* scripts of strategies that read state; NULL: none */
	struct contract_guard guard;
	struct contract_key key;
	struct contract_field *fields;
	size_t field_count;
	bool refuse_unknown_fields;
	enum field_class payload; /* what is stored of it; CLASS_OMIT: nothing */
	struct contract_same same;
	struct contract_duplicates duplicates;
	bool final[REFUSAL_CLASSES]; /* final, or may the same key try again? */
	enum answer_store answer;
	struct contract_answer success; /* what it answers */
	const char *location;           /* a template of the resource's address; NULL: none */
	int64_t audit_retain_us;
	struct contract_unique *uniques;
	size_t unique_count;
	struct texts serialize_by; /* items NULL: not declared; an empty list: it contends for no row */
	struct texts emits;        /* types */
	struct contract_emit *events; /* all of them; NULL: the handler makes them */
	size_t event_count;
	struct contract_reject *rejects;
	size_t reject_count;
	struct texts covers;
	const char *reconciled_by, *corrected_by;
	const char *script; /* handler: {sql: FILE}; NULL for callback and upstream */
	struct contract_rows rows;
	struct contract_staged staged;
	struct contract_upstream upstream;

	/* The exception that is opened when the outcome of a command is unknown. */
	struct contract_unknown {
		const char *severity; /* NULL: high */
		int64_t sla_us;       /* 0: 4h */
		bool needs_approval;  /* a second person */
	} unknown;

	struct event_contract *event; /* CONTRACT_EVENT; else NULL */

	struct texts inherited; /* member paths answered by defaults.yaml: "key.retain" */
	const char *text;       /* canonical JSON of all answers */
	struct sha256 digest;   /* of text */
};

/* ---- Reading -------------------------------------------------------------------------------- */

/* Something wrong in a file. */
struct contract_problem {
	const char *file;     /* as given to the user: "contracts/create-payment.yaml" */
	int line;             /* 0: the file as a whole */
	const char *text;     /* "key.retain is missing" */
	const char *question; /* the question left open; NULL when there is none */
};

struct contracts; /* a directory of contracts: immutable, shared by threads */

/* Read every *.yaml of `dir` (not recursive; defaults.yaml gives answers to all). Reads all files
 * before it fails: IBID_CONTRACT when any problem was found, with the first problem in `err`, and
 * the set, which lists all problems, in `*ret`. For any other code `*ret` is untouched. */
IBID_CHECK enum ibid_code contracts_load(const char *dir, struct contracts **ret,
                                         struct ibid_err *err);
void contracts_free(struct contracts *contracts); /* takes NULL */

size_t contracts_problem_count(const struct contracts *contracts);
const struct contract_problem *contracts_problem(const struct contracts *contracts, size_t index);

/* The commands, sorted by name. */
size_t contracts_count(const struct contracts *contracts);
const struct contract *contracts_at(const struct contracts *contracts, size_t index);
const struct contract *contracts_find(const struct contracts *contracts, const char *name);
const char *contracts_dir(const struct contracts *contracts);

/* The events, sorted by type. */
size_t contracts_event_count(const struct contracts *contracts);
const struct contract *contracts_event_at(const struct contracts *contracts, size_t index);

/* "command", "event": as the stores keep it. */
const char *contract_kind_name(enum contract_kind kind);

/* Read back a text that the store keeps. Everything lives in `arena`. */
IBID_CHECK enum ibid_code contract_from_text(struct arena *arena, const char *text,
                                             struct contract **ret, struct ibid_err *err);

/* A file as one store knows it: "$store" in its name replaced by `store_name`. NULL without memory.
 */
const char *contract_file_name(struct arena *arena, const char *file, const char *store_name);

/* The content of a file of the directory, with "$store" in its name replaced by `store_name`
 * ("sqlite", "postgres"). IBID_NOT_FOUND names the file that is missing. */
IBID_CHECK enum ibid_code contracts_read_file(const struct contracts *contracts,
                                              struct arena *arena, const char *file,
                                              const char *store_name, const char **ret,
                                              struct ibid_err *err);

/* "2w", "400d": the shortest exact form of a duration, for tables and texts. */
const char *contract_duration(struct arena *arena, int64_t us);

struct str;

/* Every member of every kind, its values and the question it answers, as Markdown tables. */
void contract_reference(struct str *out);

/* The members that a strategy needs or excludes. */
struct strategy_needs {
	bool already, state, guard, because, unique, staged; /* members that must be there */
	bool serialize_by; /* needs serialize_by: the row whose state it reads */
	bool silent;       /* it may not emit: every repetition would emit again */
	const char *proof; /* how the engine enforces it, as one clause */
};
const struct strategy_needs *contract_strategy_needs(enum contract_strategy strategy);

/* Does it read state before and after its handler? */
bool contract_looks(const struct contract *contract);

/* Does the contract's scope or context contain the resource? */
static inline bool contract_asks_resource(const struct contract *contract)
{
	return (contract->key.scope | contract->same.context) & SCOPE_RESOURCE;
}

/* What runs a staged command, as the end of the sentence "it is run by ...". */
const char *contract_run_by(const struct contract *contract);

/* Names for tables and messages. */
/* The field with this pointer, NULL when it is not declared. */
const struct contract_field *contract_field_at(const struct contract *contract,
                                               const char *pointer);
const char *contract_strategy_name(enum contract_strategy strategy);
const char *field_type_name(enum field_type type);
const char *field_class_name(enum field_class class);

#endif
