/* SPDX-License-Identifier: Apache-2.0 */
/* transition.c -- state machines: ibid_define_machine for schema files, ibid_move for handlers.
 *
 * Where a subject is decides what a command means: the move that it asks for, one that was made
 * already, or one that can't be made. One history row per accepted move (I3). */
#include "base/canon.h"
#include "base/json.h"
#include "store/sqlite/work.h"

#include <inttypes.h>
#include <string.h>

enum { ATTRIBUTES_BYTES_MAX = 1 << 20 };

/* ---- ibid_define_machine(machine, moves) ---------------------------------------------------- */

static bool state_ok(const struct json *state)
{
	return state && state->type == JSON_STRING && strlen(state->text) == state->size &&
	       state->size <= NAME_BYTES_MAX;
}

static bool move_ok(const struct json *move)
{
	return move->type == JSON_ARRAY && move->size == 2 && state_ok(move->child) &&
	       state_ok(move->child->next) && move->child->next->size > 0;
}

static enum ibid_code check_moves(const char *machine, const struct json *moves,
                                  struct ibid_err *err)
{
	bool begins = false;
	if (!machine || !*machine || strlen(machine) > NAME_BYTES_MAX)
		return err_set(err, IBID_CONTRACT, "the machine's name is a text of 1 to 255 bytes");
	if (!moves || moves->type != JSON_ARRAY)
		return err_set(err, IBID_CONTRACT, "the moves are a JSON array of [from, to]");
	for (const struct json *move = moves->child; move; move = move->next) {
		if (!move_ok(move))
			return err_set(err, IBID_CONTRACT,
			               "a move is [from, to]: two texts of at most 255 bytes, from empty for "
			               "the first one");
		begins |= move->child->size == 0;
	}
	if (!begins)
		return err_set(err, IBID_CONTRACT,
		               "no move leads from the empty state, in which everything begins");
	return IBID_OK;
}

static enum ibid_code put_move(struct lite_conn *conn, enum lite_sql sql, const char *machine,
                               const struct json *move, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, sql, &run, err);
	lite_bind_text(&run, machine);
	if (move) {
		lite_bind_text(&run, move->child->text);
		lite_bind_text(&run, move->child->next->text);
	}
	return lite_conclude(&run, code, err);
}

static enum ibid_code define(struct lite_conn *conn, struct arena *arena, sqlite3_value **values,
                             struct ibid_err *err)
{
	const char *machine = lite_work_text(values[0]), *text = lite_work_text(values[1]);
	struct json *moves = NULL;
	enum ibid_code code = lite_work_check(values[0], "the machine's name", err);
	if (!code && text)
		code = json_read(arena, text, (size_t)sqlite3_value_bytes(values[1]), 0, &moves, err);
	if (!code)
		code = check_moves(machine, moves, err);
	if (!code)
		code = put_move(conn, LITE_machine_move_clear, machine, NULL, err);
	for (const struct json *move = moves ? moves->child : NULL; !code && move; move = move->next)
		code = put_move(conn, LITE_machine_move_put, machine, move, err);
	return code;
}

void lite_define_machine(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct lite_conn *conn = sqlite3_user_data(context);
	struct arena arena = {0};
	struct ibid_err err;
	(void)count;
	if (conn->tx || conn->mode != LITE_SCRIPT) {
		sqlite3_result_error(context, "ibid_define_machine belongs to the schema, not to a handler",
		                     -1);
		return;
	}
	conn->mode = LITE_OURS;
	enum ibid_code code = define(conn, &arena, values, &err);
	conn->mode = LITE_SCRIPT;
	arena_release(&arena);
	if (code) {
		err_prefix(&err, "ibid_define_machine");
		sqlite3_result_error(context, err.text, -1);
	}
}

/* ---- ibid_move(machine, subject_id, to_state [, attributes [, expected_version]]) ------------ */

struct move {
	struct lite_tx *tx;
	const char *machine, *subject_id, *to_state, *attributes;
	bool expects;
	int64_t expected_version;
};

/* Where the subject is; '' at version 0 before its first move. */
struct head {
	const char *state, *attributes;
	int64_t version;
};

static enum ibid_code read_attributes(struct move *move, sqlite3_value *value, struct ibid_err *err)
{
	struct arena *arena = &move->tx->arena;
	struct str canonical = STR_INIT(ATTRIBUTES_BYTES_MAX);
	const char *text = lite_work_text(value);
	struct json *json = NULL;
	if (sqlite3_value_type(value) == SQLITE_NULL)
		return IBID_OK;
	if (!text || json_read(arena, text, (size_t)sqlite3_value_bytes(value), 0, &json, err) ||
	    json->type != JSON_OBJECT)
		return err_set(err, IBID_FAILED, "ibid_move: the attributes are a JSON object or null");
	canon_write(&canonical, json);
	move->attributes = canonical.failed ? NULL : arena_strdup(arena, str_text(&canonical));
	str_release(&canonical);
	return move->attributes ? IBID_OK
	                        : err_set(err, IBID_FAILED,
	                                  "ibid_move: the attributes are longer than "
	                                  "1 MiB");
}

static enum ibid_code read_expected(struct move *move, sqlite3_value *value, struct ibid_err *err)
{
	int type = sqlite3_value_type(value);
	if (type != SQLITE_NULL && type != SQLITE_INTEGER)
		return err_set(err, IBID_FAILED, "ibid_move: the expected version is an integer or null");
	move->expects = type == SQLITE_INTEGER;
	move->expected_version = sqlite3_value_int64(value);
	return IBID_OK;
}

static enum ibid_code read_move(struct move *move, struct lite_work_args args, struct ibid_err *err)
{
	move->machine = lite_work_text(args.values[0]);
	move->subject_id = lite_work_text(args.values[1]);
	move->to_state = lite_work_text(args.values[2]);
	move->attributes = "{}";
	if (!move->machine)
		return err_set(err, IBID_FAILED, "ibid_move: the machine is missing");
	enum ibid_code code = lite_work_check(args.values[0], "ibid_move: the machine", err);
	if (!code)
		code = lite_work_name(move->tx, args.values[1], "subject", "BAD_SUBJECT", err);
	if (!code)
		code = lite_work_name(move->tx, args.values[2], "state", "BAD_STATE", err);
	if (!code && args.count > 3)
		code = read_attributes(move, args.values[3], err);
	if (!code && args.count > 4)
		code = read_expected(move, args.values[4], err);
	return code;
}

static enum ibid_code read_head(const struct move *move, struct head *ret, struct ibid_err *err)
{
	struct arena *arena = &move->tx->arena;
	struct lite_run run;
	*ret = (struct head){.state = "", .attributes = "{}"};
	enum ibid_code code = lite_start(move->tx->conn, LITE_machine_state_get, &run, err);
	lite_bind_text(&run, move->tx->context.tenant);
	lite_bind_text(&run, move->machine);
	lite_bind_text(&run, move->subject_id);
	if (lite_row(&run, &code, err)) {
		ret->state = lite_read_text(&run, arena);
		ret->version = lite_read_int(&run);
		ret->attributes = lite_read_text(&run, arena);
	}
	lite_end(&run);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	return code;
}

static enum ibid_code look_up(const struct move *move, const char *from, bool *ret_defined,
                              bool *ret_allowed, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(move->tx->conn, LITE_machine_move_get, &run, err);
	lite_bind_text(&run, move->machine);
	lite_bind_text(&run, from);
	lite_bind_text(&run, move->to_state);
	if (lite_row(&run, &code, err)) {
		*ret_defined = lite_read_int(&run);
		*ret_allowed = lite_read_int(&run);
	}
	lite_end(&run);
	return code;
}

static enum ibid_code reject(const struct move *move, const char *reason, const char *text,
                             struct ibid_err *err)
{
	char *said = arena_printf(&move->tx->arena, "%s %s %s", move->machine, move->subject_id,
	                          text ? text : "");
	return lite_tx_reject(move->tx, reason, 409, said ? said : "", err);
}

static bool made_already(const struct move *move, const struct head *head)
{
	return strcmp(head->state, move->to_state) == 0 &&
	       strcmp(head->attributes, move->attributes) == 0 &&
	       (!move->expects || move->expected_version == head->version ||
	        move->expected_version == head->version - 1);
}

/* May the subject move? */
static enum ibid_code judge(const struct move *move, const struct head *head, struct ibid_err *err)
{
	struct arena *arena = &move->tx->arena;
	bool defined = false, allowed = false;
	enum ibid_code code = look_up(move, head->state, &defined, &allowed, err);
	if (code)
		return code;
	if (!defined)
		return err_set(err, IBID_FAILED, "ibid_move: no machine %s is defined", move->machine);
	if (move->expects && move->expected_version != head->version)
		return reject(move, "VERSION_CONFLICT",
		              arena_printf(arena, "is at version %" PRId64 "; the command expects %" PRId64,
		                           head->version, move->expected_version),
		              err);
	if (allowed)
		return IBID_OK;
	if (strcmp(head->state, move->to_state) == 0)
		return reject(move, "ALREADY_OTHERWISE",
		              arena_printf(arena, "is %s already, with other attributes", head->state),
		              err);
	return reject(move, "NOT_ALLOWED",
	              arena_printf(arena, "may not move from %s to %s",
	                           *head->state ? head->state : "nothing", move->to_state),
	              err);
}

static enum ibid_code put(const struct move *move, const struct head *head, enum lite_sql sql,
                          struct ibid_err *err)
{
	const struct work_context *context = &move->tx->context;
	struct lite_run run;
	enum ibid_code code = lite_start(move->tx->conn, sql, &run, err);
	lite_bind_text(&run, context->tenant);
	lite_bind_text(&run, move->machine);
	lite_bind_text(&run, move->subject_id);
	lite_bind_int(&run, head->version + 1);
	lite_bind_text(&run, head->state);
	lite_bind_text(&run, move->to_state);
	lite_bind_text(&run, move->attributes);
	lite_bind_uuid(&run, &context->command_id);
	lite_bind_int(&run, context->now_us);
	if (!code)
		code = lite_finish(&run, err);
	if (!code && sqlite3_changes(move->tx->conn->db) != 1)
		code = err_set(err, IBID_RETRY, "%s %s was moved by another", move->machine,
		               move->subject_id);
	lite_end(&run);
	return code;
}

static void answer_with(struct str *answer, bool moved, const char *from, const char *state,
                        int64_t version)
{
	str_addf(answer, "{\"from\":");
	str_add_json(answer, from, strlen(from));
	str_addf(answer, ",\"moved\":%s,\"state\":", moved ? "true" : "false");
	str_add_json(answer, state, strlen(state));
	str_addf(answer, ",\"version\":%" PRId64 "}", version);
}

enum ibid_code lite_move(struct lite_tx *tx, struct lite_work_args args, struct str *answer,
                         struct ibid_err *err)
{
	struct move move = {.tx = tx};
	struct head head;
	enum ibid_code code = read_move(&move, args, err);
	if (!code)
		code = read_head(&move, &head, err);
	if (code)
		return code;
	if (made_already(&move, &head)) {
		answer_with(answer, false, head.state, head.state, head.version);
		return IBID_OK;
	}
	code = judge(&move, &head, err);
	if (!code)
		code = put(&move, &head, LITE_machine_state_put, err);
	if (!code)
		code = put(&move, &head, LITE_machine_history_put, err);
	if (!code)
		answer_with(answer, true, head.state, move.to_state, head.version + 1);
	return code;
}
