/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h -- what every subcommand shares: its place in the table, its exit codes, its helpers. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/options.h"

#include "contract/contract.h"
#include "contract/payload.h"
#include "desk/action.h"
#include "store/run.h"

/* What a script can rely on: X(symbol, number, meaning). */
#define CLI_EXITS(X)                                                                               \
	X(CLI_OK, 0, "executed, replayed or linked; done")                                             \
	X(CLI_ERROR, 1, "an error; the message names the fix")                                         \
	X(CLI_USAGE, 2, "the command line is wrong")                                                   \
	X(CLI_REJECTED, 3, "rejected, now or before; or the key has expired")                          \
	X(CLI_CONFLICT, 4, "the key was used for another payload")                                     \
	X(CLI_IN_PROGRESS, 5, "the same command is being run now")                                     \
	X(CLI_UNKNOWN, 6, "whether it ran is not known: ask again with the same key")                  \
	X(CLI_AGAIN, 7, "failed or busy: try again with the same key")                                 \
	X(CLI_FOUND, 8, "a check found something")

enum cli_exit {
#define CLI_EXIT_ENUM(symbol, number, meaning) symbol = (number),
	CLI_EXITS(CLI_EXIT_ENUM)
#undef CLI_EXIT_ENUM
};

/* What a person does by a command (cmd_act.c). */
struct cli_act {
	enum action_verb verb;
	const char *action;  /* ACTION_DO; NULL: --action names it */
	const char *subject; /* its type; NULL: an exception */
	const char *past;    /* what is said when it is done: "released" */
};

/* What `cmd_list` lists: the rows of a statement, shown as their shape says. */
struct cli_list {
	enum sql_id statement; /* it is asked by --tenant, if at all */
	const struct row_shape *shape;
	const char *none; /* said in place of an empty table: "no tenants" */
};

/* One subcommand. Names of two words form a group: "contract check". */
struct cli_command {
	const char *name;
	int (*run)(const struct args *args);
	struct cli_act act;   /* cmd_act's */
	struct cli_list list; /* cmd_list's */
	bool settings;        /* it is run by all settings, and reads them itself */
	uint64_t takes;       /* BIT(OPT_...); --config goes with what a settings file can say */
	uint64_t needs;       /* of them, those that must be given */
	const char *operands; /* for the usage line: "[FILE|-]"; "" when there are none */
	size_t operand_max;
	const char *summary;             /* one line, in the list of commands */
	const char *details;             /* paragraphs for --help */
	const char *examples;            /* lines for --help */
	const char *meanings[OPT_COUNT]; /* of options that mean something else here; NULL: as ever */
};

bool takes_option(const struct cli_command *command, enum option option);

/* What an option means for this command. */
const char *option_meaning(const struct cli_command *command, enum option option);

/* The table of subcommands; ends with a NULL name. */
extern const struct cli_command cli_commands[];

int cmd_init(const struct args *args);
int cmd_migrate(const struct args *args);
int cmd_contract_check(const struct args *args);
int cmd_contract_matrix(const struct args *args);
int cmd_contract_review(const struct args *args);
int cmd_contract_apply(const struct args *args);
int cmd_canon(const struct args *args);
int cmd_fingerprint(const struct args *args);
int cmd_submit(const struct args *args);
int cmd_command_show(const struct args *args);
int cmd_command_list(const struct args *args);
int cmd_exception_show(const struct args *args);
int cmd_exception_list(const struct args *args);
int cmd_act(const struct args *args);  /* whatever a person does */
int cmd_list(const struct args *args); /* lists that need nothing of their own */
int cmd_outbox_list(const struct args *args);
int cmd_outbox_show(const struct args *args);
int cmd_command_recover(const struct args *args);
int cmd_retain(const struct args *args);
int cmd_archive_list(const struct args *args);
int cmd_archive_verify(const struct args *args);
int cmd_archive_restore(const struct args *args);
int cmd_erase(const struct args *args);
int cmd_reference_show(const struct args *args);
int cmd_proxy(const struct args *args);
int cmd_relay(const struct args *args);
int cmd_pause_list(const struct args *args);
int cmd_serve(const struct args *args);
int cmd_token_create(const struct args *args);
int cmd_token_list(const struct args *args);
int cmd_token_revoke(const struct args *args);
int cmd_status(const struct args *args);
int cmd_doctor(const struct args *args);
int cmd_version(const struct args *args);
int cmd_help(const struct args *args);

/* ---- Help (help.c) -------------------------------------------------------------------------- */

void help_overview(void);                             /* to the standard output */
void help_command(const struct cli_command *command); /* likewise */
/* A group's name ("contract") lists its commands. False when there is no such group. */
bool help_group(const char *group);

/* Complain about the command line on the standard error; returns CLI_USAGE. `command` NULL: about
 * what stands before a command. */
int usage_error(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- Input (input.c) ------------------------------------------------------------------------ */

/* The bytes of a file, or of the standard input for NULL and "-": at most JSON_BYTES_MAX, with a
 * NUL behind them. */
IBID_CHECK enum ibid_code input_read(struct arena *arena, const char *file, const char **ret,
                                     size_t *ret_size, struct ibid_err *err);

/* How the input is called in messages: the file, or "-". */
const char *input_name(const char *file);

/* ---- Shared by commands (common.c) ---------------------------------------------------------- */

/* Who sends: the options, with `cli` and the name of the operating-system user in the gaps. */
struct sender sender_of(struct arena *arena, const struct args *args);

/* Who acts: the token in the environment, IBID_TOKEN. IBID_DENIED: there is none, or it is not
 * valid.
 */
IBID_CHECK enum ibid_code find_actor(struct store *store, struct arena *arena, struct actor *ret,
                                     struct ibid_err *err);

/* The name of whoever runs this, or the number where the system has no name for it. */
const char *user_name(struct arena *arena);

/* Open --store; with `schema`, one that this binary may work on. */
IBID_CHECK enum ibid_code open_store(const struct args *args, bool create, bool schema,
                                     struct store **ret, struct ibid_err *err);

/* The store's URL without its password. */
const char *store_shown(struct arena *arena, const struct args *args);

/* Load a directory of contracts, all of them right. */
IBID_CHECK enum ibid_code load_contracts(const char *dir, struct contracts **ret,
                                         struct ibid_err *err);

/* A scope as --scope takes it: "client=web,actor=u7". */
const char *scope_text(struct arena *arena, const char *scope);

/* The identity of the one command that --tenant, --operation, --key and --scope name, of which the
 * last may be left out, or name some parts, where that is enough. IBID_INVALID: it is not. */
IBID_CHECK enum ibid_code command_by_key(struct store *store, struct arena *arena,
                                         const struct args *args, struct identity *ret,
                                         struct ibid_err *err);

/* The directory that `contract ...` works on: its operand or --contracts; NULL when neither is
 * there. */
const char *dir_of(const struct args *args);
int usage_no_dir(const struct args *args);

#endif
