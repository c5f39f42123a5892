/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_status.c -- how a ledger stands, at a glance: a line for each part, and what needs somebody.
 */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/pause.h"
#include "store/outbox.h"

#include <stdio.h>
#include <string.h>

enum { LEFT_COLUMNS = 39 };

/* How the directory's contracts and those that the store keeps compare. */
struct agreement {
	size_t count, missing, changed;
};

struct status {
	const char *store;
	int schema;
	struct measurement ledger;
	struct backlog_row *outbox; /* by destination */
	size_t outbox_count;
	bool has_contracts;
	struct agreement contracts;
	struct pause_row *pauses;
	size_t pause_count;
};

/* ---- Looking -------------------------------------------------------------------------------- */

static enum ibid_code compare_one(struct store *store, struct arena *arena,
                                  const struct contract *contract, struct agreement *ret,
                                  struct ibid_err *err)
{
	struct contract_row row;
	enum ibid_code code = store_get_contract(store, arena, contract_kind_name(contract->kind),
	                                         contract->name, contract->version, &row, err);
	ret->count++;
	if (code == IBID_NOT_FOUND)
		ret->missing++;
	else if (!code)
		ret->changed += memcmp(&row.digest, &contract->digest, sizeof row.digest) != 0;
	return code == IBID_NOT_FOUND ? IBID_OK : code;
}

static enum ibid_code compare(struct store *store, struct arena *arena, const char *dir,
                              struct agreement *ret, struct ibid_err *err)
{
	struct contracts *contracts = NULL;
	enum ibid_code code = load_contracts(dir, &contracts, err);
	if (code)
		return code;
	for (size_t i = 0; !code && i < contracts_count(contracts); i++)
		code = compare_one(store, arena, contracts_at(contracts, i), ret, err);
	for (size_t i = 0; !code && i < contracts_event_count(contracts); i++)
		code = compare_one(store, arena, contracts_event_at(contracts, i), ret, err);
	contracts_free(contracts);
	return code;
}

/* Who may only read is told the same: it takes longer where nobody has counted. */
static enum ibid_code look_at_outbox(struct store *store, struct arena *arena, struct status *ret,
                                     struct ibid_err *err)
{
	enum { PIECES = 100000 };
	struct ibid_err ignored = {0};
	(void)!outbox_count(store, PIECES, &ignored);
	return store->ops->measure_outbox(store, arena, &ret->outbox, &ret->outbox_count, err);
}

static enum ibid_code look(struct store *store, struct arena *arena, const char *dir,
                           struct status *ret, struct ibid_err *err)
{
	ret->store = store->ops->name;
	enum ibid_code code = store->ops->check_schema(store, &ret->schema, err);
	if (!code)
		code = store->ops->measure(store, arena, &ret->ledger, err);
	if (!code)
		code = store_list_pauses(store, arena, NULL, &ret->pauses, &ret->pause_count, err);
	if (!code)
		code = look_at_outbox(store, arena, ret, err);
	if (!code && dir) {
		ret->has_contracts = true;
		code = compare(store, arena, dir, &ret->contracts, err);
	}
	return code;
}

/* ---- Telling -------------------------------------------------------------------------------- */

/* What stops a destination as a whole; NULL: nothing does. */
static const struct pause_row *pause_of(const struct status *status, const struct backlog_row *row)
{
	const struct pausable all = {row->destination, "", ""};
	for (size_t i = 0; i < status->pause_count; i++)
		if (pause_keeps(&status->pauses[i], &all))
			return &status->pauses[i];
	return NULL;
}

/* Toward one destination: what its relays do. */
static const char *state_of(const struct status *status, const struct backlog_row *row)
{
	if (pause_of(status, row))
		return "paused";
	if (row->leased == OUTBOX_LANES)
		return "running";
	if (row->leased)
		return "partial"; /* it has just begun, or what somebody held is about to be taken over */
	return row->backlog ? "stopped" : "idle";
}

static void add_outbox(struct str *out, const struct status *status, const struct backlog_row *row)
{
	obj_begin(out, NULL, '{');
	row_add_json(out, &backlog_shape, row, ROW_WHOLE);
	obj_text(out, "state", state_of(status, row));
	obj_int(out, "lanes", OUTBOX_LANES);
	obj_end(out, '}');
}

static bool print_json(const struct status *status)
{
	const struct measurement *ledger = &status->ledger;
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "store", status->store);
	obj_int(&out, "schema", status->schema);
	obj_bool(&out, "healthy", true);
	obj_int(&out, "commands", ledger->commands);
	obj_int(&out, "inProgress", ledger->in_progress);
	obj_int(&out, "stale", ledger->stale);
	obj_int(&out, "unknown", ledger->unknown);
	obj_begin(&out, "outbox", '[');
	for (size_t i = 0; i < status->outbox_count; i++)
		add_outbox(&out, status, &status->outbox[i]);
	obj_end(&out, ']');
	obj_begin(&out, "exceptions", '{');
	obj_int(&out, "open", ledger->open);
	obj_int(&out, "overdue", ledger->overdue);
	obj_begin(&out, "owners", '[');
	for (size_t i = 0; i < ledger->owner_count; i++) {
		obj_begin(&out, NULL, '{');
		obj_text(&out, "owner", ledger->owners[i].owner);
		obj_int(&out, "open", ledger->owners[i].open);
		obj_int(&out, "overdue", ledger->owners[i].overdue);
		obj_end(&out, '}');
	}
	obj_end(&out, ']');
	obj_end(&out, '}');
	row_add_list(&out, "paused", &pause_shape, status->pauses, status->pause_count, ROW_WHOLE);
	if (status->has_contracts) {
		obj_begin(&out, "contracts", '{');
		obj_int(&out, "count", (int64_t)status->contracts.count);
		obj_int(&out, "notKept", (int64_t)status->contracts.missing);
		obj_int(&out, "changed", (int64_t)status->contracts.changed);
		obj_end(&out, '}');
	}
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

/* "1,204,331" */
static const char *grouped(struct arena *arena, int64_t number)
{
	char digits[24], text[32];
	size_t size = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number), used = 0;
	for (size_t i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			text[used++] = ',';
		text[used++] = digits[i];
	}
	return arena_strndup(arena, text, used);
}

static void print_line(const char *name, const char *left, const char *right, const char *needs)
{
	if (!left || !right)
		return; /* no memory: told at the end */
	out_textf("%-10s ", name);
	if (*right || needs)
		out_textf("%-*s%s", LEFT_COLUMNS, left, right);
	else
		out_text(left);
	if (needs) {
		out_text("  ");
		out_painted(PAINT_WARN, needs);
	}
	out_text("\n");
}

static void print_store(struct arena *arena, const struct status *status)
{
	const struct measurement *ledger = &status->ledger;
	const char *stale = ledger->stale
	                        ? arena_printf(arena, ", %s stale", grouped(arena, ledger->stale))
	                        : "";
	print_line("store",
	           arena_printf(arena, "%s, schema %d, healthy", status->store, status->schema),
	           arena_printf(arena, "commands %s   in progress %s%s   unknown %s",
	                        grouped(arena, ledger->commands), grouped(arena, ledger->in_progress),
	                        stale, grouped(arena, ledger->unknown)),
	           ledger->unknown ? "← needs a person"
	           : ledger->stale ? "← ibid command recover"
	                           : NULL);
}

static void print_destination(struct arena *arena, const char *name, const struct status *status,
                              const struct backlog_row *row)
{
	const char *oldest = row->backlog ? arena_printf(arena, ", oldest %s",
	                                                 duration_text(arena, row->oldest_us))
	                                  : "";
	const char *parked = row->parked
	                         ? arena_printf(arena, ", %s parked", grouped(arena, row->parked))
	                         : "";
	bool stopped = !row->leased && row->backlog && !pause_of(status, row);
	print_line(name, arena_printf(arena, "backlog %s%s", grouped(arena, row->backlog), oldest),
	           arena_printf(arena, "%s: %s%s", row->destination, state_of(status, row), parked),
	           row->parked ? "← needs a person"
	           : stopped   ? "← ibid relay"
	                       : NULL);
}

static void print_outbox(struct arena *arena, const struct status *status)
{
	for (size_t i = 0; i < status->outbox_count; i++)
		print_destination(arena, i ? "" : "outbox", status, &status->outbox[i]);
}

static void print_exceptions(struct arena *arena, const struct measurement *ledger)
{
	const char *owners = "";
	for (size_t i = 0; i < ledger->owner_count; i++)
		owners = arena_printf(arena, "%s%s%s %s", owners, i ? "   " : "", ledger->owners[i].owner,
		                      grouped(arena, ledger->owners[i].open));
	print_line("exceptions",
	           arena_printf(arena, "%s open, %s overdue", grouped(arena, ledger->open),
	                        grouped(arena, ledger->overdue)),
	           owners, ledger->overdue ? "← needs a person" : NULL);
}

/* What a person paused is that person's to resume; what refused everything needs somebody. */
static void print_pauses(struct arena *arena, const struct status *status)
{
	for (size_t i = 0; i < status->pause_count; i++) {
		const struct pause_row *row = &status->pauses[i];
		print_line("paused", pause_line(arena, row), "",
		           row->source == PAUSE_BY_RELAY
		               ? arena_printf(arena, "← ibid resume destination %s", row->name)
		               : NULL);
	}
}

static void print_contracts(struct arena *arena, const struct agreement *contracts)
{
	const char *wrong = contracts->changed
	                        ? arena_printf(arena, "%zu changed after being put to use",
	                                       contracts->changed)
	                    : contracts->missing
	                        ? arena_printf(arena, "%zu not kept in the store", contracts->missing)
	                        : "";
	print_line("contracts", arena_printf(arena, "%zu", contracts->count), wrong,
	           contracts->changed   ? "← ibid doctor"
	           : contracts->missing ? "← ibid contract apply"
	                                : NULL);
}

int cmd_status(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct status status = {.store = NULL};
	int exit = CLI_OK;
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = look(store, &arena, args->values[OPT_CONTRACTS], &status, &err);
	if (code) {
		exit = say_err(&err);
	} else if (args_has(args, OPT_JSON)) {
		exit = print_json(&status) ? CLI_OK : CLI_ERROR;
	} else {
		print_store(&arena, &status);
		print_outbox(&arena, &status);
		print_exceptions(&arena, &status.ledger);
		print_pauses(&arena, &status);
		if (status.has_contracts)
			print_contracts(&arena, &status.contracts);
		exit = arena.failed ? say_no_memory() : CLI_OK;
	}
	store_close(store);
	arena_release(&arena);
	return exit;
}
