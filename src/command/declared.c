/* SPDX-License-Identifier: Apache-2.0 */
#include "command/declared.h"

#include "contract/template.h"
#include "store/event_rule.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct contract_reject *declared_reject(const struct contract *contract,
                                              const char *const *values)
{
	for (size_t i = 0; i < contract->reject_count; i++)
		if (reject_applies(&contract->rejects[i], values))
			return &contract->rejects[i];
	return NULL;
}

/* ---- The answer ----------------------------------------------------------------------------- */

/* NULL: it is longer than `cap` bytes, or there is no memory, as arena->failed tells. */
static const char *fill_in(struct arena *arena, const struct template *template,
                           const char *const *values, size_t cap)
{
	struct str json = STR_INIT(cap);
	template_write(&json, template, values);
	const char *text = json.failed ? NULL : arena_strndup(arena, json.data, json.size);
	str_release(&json);
	return text;
}

static enum ibid_code make_answer(struct ibid_work *work, const char *const *values)
{
	const struct contract_answer *success = &work->contract->success;
	struct outcome outcome = {.status = success->status, .found = true, .exact = true};
	if (success->body.count) {
		outcome.body = fill_in(work->arena, &success->body, values, ANSWER_BYTES_MAX);
		if (!outcome.body)
			return outcome_fail(work->arena, &work->outcome,
			                    "the answer that the contract declares has more than %d bytes",
			                    ANSWER_BYTES_MAX);
		outcome.body_size = strlen(outcome.body);
	}
	if (success->resource_type) {
		outcome.resource_type = success->resource_type;
		outcome.resource_id = value_text(&success->resource_id, values);
	}
	enum ibid_code code = work_check_answer(work->arena, &outcome);
	work->outcome = outcome;
	return code;
}

/* ---- Events --------------------------------------------------------------------------------- */

static enum ibid_code make_event(struct ibid_work *work, const struct contract_emit *emit,
                                 const char *const *values)
{
	const struct event_rule *rule = event_rule_find(work->rules, emit->type);
	const char *version = emit->version.given ? value_text(&emit->version, values) : NULL;
	struct ibid_event event = {
	    .aggregate_type = rule && !emit->aggregate_type ? rule->aggregate : emit->aggregate_type,
	    .aggregate_id = value_text(&emit->aggregate_id, values),
	    .type = emit->type,
	    .payload = fill_in(work->arena, &emit->payload, values, EVENT_BYTES_MAX),
	    .version = version ? strtoll(version, NULL, 10) : 0,
	    .key = emit->key.given ? value_text(&emit->key, values) : NULL,
	};
	if (!event.payload)
		return outcome_fail(work->arena, &work->outcome,
		                    "event %s: its payload has more than %d bytes", emit->type,
		                    EVENT_BYTES_MAX);
	return work_note_event(work, &event, event.payload, NULL);
}

static enum ibid_code make_events(struct ibid_work *work, const char *const *values)
{
	const struct contract *contract = work->contract;
	enum ibid_code code = IBID_OK;
	work->event_count = 0; /* the same handler may run twice */
	work->events = arena_array(work->arena, contract->event_count, sizeof *work->events);
	if (!work->events)
		return IBID_NOMEM;
	for (size_t i = 0; !code && i < contract->event_count; i++)
		code = make_event(work, &contract->events[i], values);
	if (code && work->failure.code)
		return outcome_fail(work->arena, &work->outcome, "%s", work->failure.text);
	return code;
}

enum ibid_code declared_succeed(struct ibid_work *work, const char *const *values)
{
	enum ibid_code code = IBID_OK;
	if (work->contract->success.status)
		code = make_answer(work, values);
	if (!code && work->contract->events)
		code = make_events(work, values);
	return code;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

enum ibid_code declared_check_rows(struct arena *arena, const struct contract *contract,
                                   struct outcome *outcome)
{
	const struct contract_rows *rows = &contract->rows;
	for (size_t i = 0; i < rows->count && i < outcome->row_count; i++)
		if (rows->items[i] != ROWS_ANY && rows->items[i] != outcome->rows[i])
			return outcome_fail(arena, outcome,
			                    "statement %zu of %s changed or returned %" PRId64
			                    " rows, and handler.rows of the contract says %" PRId64
			                    ": nothing was committed",
			                    i + 1, contract->script, outcome->rows[i], rows->items[i]);
	return IBID_OK;
}

bool declared_compares(const struct contract *contract)
{
	for (size_t i = 0; i < contract->rows.count; i++)
		if (contract->rows.items[i] != ROWS_ANY)
			return true;
	return false;
}

/* ---- The script ----------------------------------------------------------------------------- */

/* The statement begins with its first token. */
static bool begins_with(const char *sql, const char *word)
{
	size_t size = strlen(word);
	return strncasecmp(sql, word, size) == 0 && !isalnum((unsigned char)sql[size]) &&
	       sql[size] != '_';
}

/* Its first word says that it may find nothing to change, and succeed. */
static bool may_change_nothing(const char *sql)
{
	static const char *const words[] = {"update", "delete", "merge"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (begins_with(sql, words[i]))
			return true;
	return false;
}

enum ibid_code declared_check_script(const struct contract *contract, const char *file,
                                     const struct script_statements *statements,
                                     struct ibid_err *err)
{
	const struct contract_rows *rows = &contract->rows;
	if (rows->count && rows->count != statements->count)
		return err_set(err, IBID_CONTRACT,
		               "%s:%d: handler.rows of %s has %zu numbers, and the script has %zu "
		               "statements: each has its own",
		               file, statements->items[0].line, contract->file, rows->count,
		               statements->count);
	for (size_t i = 0; contract->success.status && !rows->count && i < statements->count; i++)
		if (may_change_nothing(statements->items[i].sql))
			return err_set(
			    err, IBID_CONTRACT,
			    "%s:%d: the contract declares the answer, and this statement may find no "
			    "row to change: say under handler.rows how many rows each statement "
			    "changes, or any",
			    file, statements->items[i].line);
	return IBID_OK;
}
