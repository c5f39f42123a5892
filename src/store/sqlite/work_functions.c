/* SPDX-License-Identifier: Apache-2.0 */
/* work_functions.c -- ibid_emit and ibid_reject, as scripts call them, and what all functions for
 * handlers share.
 *
 * They speak for the command that runs on the connection. Whatever goes wrong dooms its transaction
 * (L3) and stops the statement; run_script then reports the doom, not SQLite's error. They can be
 * called by a statement of the handler only, not from a view or trigger. */
#include "base/canon.h"
#include "base/json.h"
#include "base/utf8.h"
#include "store/event_rule.h"
#include "store/sqlite/functions.h"
#include "store/sqlite/work.h"

#include <string.h>

enum {
	FLAGS = SQLITE_UTF8 | SQLITE_DIRECTONLY,
	PAYLOAD_BYTES_MAX = 1 << 20,
};

/* The script's command; NULL, with an error raised, outside one or when it is doomed already. */
static struct lite_tx *work_of(sqlite3_context *context, const char *name)
{
	struct lite_conn *conn = sqlite3_user_data(context);
	if (conn->tx && conn->mode == LITE_SCRIPT && !conn->tx->doom.code)
		return conn->tx;
	char *message = sqlite3_mprintf("%s can be called only by a command's script", name);
	sqlite3_result_error(context, message ? message : name, -1);
	sqlite3_free(message);
	return NULL;
}

static void stop(sqlite3_context *context, struct lite_tx *tx, const struct ibid_err *err)
{
	lite_tx_failed(tx, err->code, err);
	sqlite3_result_error(context, err->text, -1);
}

const char *lite_work_text(sqlite3_value *value)
{
	int type = sqlite3_value_type(value);
	if (type != SQLITE_TEXT && type != SQLITE_INTEGER)
		return NULL;
	return (const char *)sqlite3_value_text(value);
}

enum ibid_code lite_work_check(sqlite3_value *value, const char *what, struct ibid_err *err)
{
	const char *text = lite_work_text(value);
	size_t size = text ? (size_t)sqlite3_value_bytes(value) : 0;
	if (size && (memchr(text, 0, size) || !utf8_ok(text, size)))
		return err_set(err, IBID_FAILED, "%s is not UTF-8 text, or contains a zero byte", what);
	return IBID_OK;
}

static enum ibid_code check_name(sqlite3_value *value, const char *what, struct ibid_err *err)
{
	const char *text = lite_work_text(value);
	enum ibid_code code = lite_work_check(value, what, err);
	if (!code && text && sqlite3_value_bytes(value) > NAME_BYTES_MAX)
		code = err_set(err, IBID_FAILED, "%s is longer than %d bytes", what, NAME_BYTES_MAX);
	return code;
}

/* ---- ibid_reject(code, status, text) -------------------------------------------------------- */

static bool reason_ok(const char *reason)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	return reason && *reason && strspn(reason, letters) == strlen(reason);
}

static enum ibid_code check_reject(sqlite3_value **values, struct ibid_err *err)
{
	sqlite3_int64 status = sqlite3_value_int64(values[1]);
	enum ibid_code code = lite_work_check(values[0], "ibid_reject: the code", err);
	if (!code)
		code = lite_work_check(values[2], "ibid_reject: the text", err);
	if (code)
		return code;
	if (!reason_ok(lite_work_text(values[0])))
		return err_set(err, IBID_FAILED, "ibid_reject: the code is letters A-Z, digits and _");
	if (sqlite3_value_type(values[1]) != SQLITE_INTEGER || status < 400 || status > 499)
		return err_set(err, IBID_FAILED, "ibid_reject: the status is an integer from 400 to 499");
	return IBID_OK;
}

static void reject(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct lite_tx *tx = work_of(context, "ibid_reject");
	struct ibid_err err;
	(void)count;
	if (!tx)
		return;
	if (!check_reject(values, &err)) {
		const char *reason = lite_work_text(values[0]), *text = lite_work_text(values[2]);
		lite_tx_reject(tx, reason, sqlite3_value_int(values[1]), text ? text : "", &err);
	}
	stop(context, tx, &err);
}

/* ---- ibid_emit(aggregate_type, aggregate_id, type, payload [, version [, key]]) ------------- */

static bool declared(const struct work_context *context, const char *type)
{
	for (size_t i = 0; i < context->emit_count; i++)
		if (strcmp(context->emits[i], type) == 0)
			return true;
	return false;
}

static enum ibid_code read_version(sqlite3_value *value, int64_t *ret, struct ibid_err *err)
{
	int type = sqlite3_value_type(value);
	*ret = type == SQLITE_INTEGER ? sqlite3_value_int64(value) : 0;
	if ((type != SQLITE_NULL && type != SQLITE_INTEGER) || *ret < 0)
		return err_set(err, IBID_FAILED, "ibid_emit: the version is a positive integer or null");
	return IBID_OK;
}

static enum ibid_code check_texts(int count, sqlite3_value **values, struct ibid_err *err)
{
	enum ibid_code code = check_name(values[0], "ibid_emit: the aggregate type", err);
	if (!code)
		code = check_name(values[1], "ibid_emit: the aggregate id", err);
	if (!code)
		code = lite_work_check(values[2], "ibid_emit: the type", err);
	if (!code && count > 5)
		code = check_name(values[5], "ibid_emit: the key", err);
	return code;
}

static enum ibid_code read_arguments(struct lite_tx *tx, int count, sqlite3_value **values,
                                     struct event_row *ret, struct ibid_err *err)
{
	enum ibid_code code = check_texts(count, values, err);
	if (code)
		return code;
	ret->aggregate_type = lite_work_text(values[0]);
	ret->aggregate_id = lite_work_text(values[1]);
	ret->type = lite_work_text(values[2]);
	if (!ret->aggregate_type || !*ret->aggregate_type || !ret->aggregate_id || !*ret->aggregate_id)
		return err_set(err, IBID_FAILED, "ibid_emit: aggregate type and id are texts, not empty");
	if (tx->context.makes_events)
		return err_set(err, IBID_FAILED,
		               "ibid_emit: the contract makes the command's events itself");
	if (!ret->type || !declared(&tx->context, ret->type))
		return err_set(err, IBID_FAILED, "ibid_emit: the contract's emits does not list %s",
		               ret->type ? ret->type : "null");
	if (count > 5 && sqlite3_value_type(values[5]) != SQLITE_NULL) {
		ret->key = lite_work_text(values[5]);
		if (!ret->key || !*ret->key)
			return err_set(err, IBID_FAILED, "ibid_emit: the key is a text, not empty, or null");
	}
	return count > 4 ? read_version(values[4], &ret->version, err) : IBID_OK;
}

static enum ibid_code payload_too_long(struct ibid_err *err)
{
	return err_set(err, IBID_FAILED, "ibid_emit: the payload is longer than %d bytes",
	               PAYLOAD_BYTES_MAX);
}

/* The canonical form of a JSON argument, appended. It may be longer than what was given. */
static enum ibid_code read_payload(struct arena *arena, sqlite3_value *value, struct str *out,
                                   struct json **ret, struct ibid_err *err)
{
	struct json *json = NULL;
	const char *text = lite_work_text(value);
	if (!text)
		return err_set(err, IBID_FAILED, "ibid_emit: the payload is not JSON text");
	if (sqlite3_value_bytes(value) > PAYLOAD_BYTES_MAX)
		return payload_too_long(err);
	if (json_read(arena, text, (size_t)sqlite3_value_bytes(value), 0, &json, err))
		return err_set(err, IBID_FAILED, "ibid_emit: payload: %s", strdupa(err->text));
	canon_write(out, json);
	if (out->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (out->size > PAYLOAD_BYTES_MAX)
		return payload_too_long(err);
	*ret = json;
	return IBID_OK;
}

static enum ibid_code append(struct lite_tx *tx, struct arena *arena, struct json *payload,
                             struct event_row *event, struct ibid_err *err)
{
	const struct event_rule *rule = event_rule_find(tx->context.rules, event->type);
	if (tx->ordinal == EVENT_ORDINAL_MAX)
		return err_set(err, IBID_FAILED, "ibid_emit: more than %d events in one command",
		               EVENT_ORDINAL_MAX);
	event->command_id = tx->context.command_id;
	event->tenant = tx->context.tenant;
	event->ordinal = tx->ordinal + 1;
	event->id = uuid_nth(event->command_id, (unsigned)event->ordinal);
	event->correlation_id = tx->context.correlation_id;
	event->causation_id = tx->context.causation_id;
	event->traceparent = tx->context.traceparent;
	event->tracestate = tx->context.tracestate;
	event->at_us = tx->context.now_us;
	enum ibid_code code = event_rule_apply(rule, arena, payload, event, err);
	return code ? code : lite_put_event(&tx->base, event, err);
}

static void emit(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct lite_tx *tx = work_of(context, "ibid_emit");
	struct event_row event = {.version = 0};
	struct arena arena = {0};
	struct json *json = NULL;
	struct str payload = STR_INIT(2 * (size_t)JSON_BYTES_MAX);
	char id[UUID_TEXT_SIZE];
	struct ibid_err err;
	if (!tx)
		return;
	enum ibid_code code = read_arguments(tx, count, values, &event, &err);
	if (!code)
		code = read_payload(&arena, values[3], &payload, &json, &err);
	event.payload = str_text(&payload);
	if (!code)
		code = append(tx, &arena, json, &event, &err);
	str_release(&payload);
	arena_release(&arena);
	if (code) {
		stop(context, tx, &err);
	} else {
		uuid_write(event.id, id);
		sqlite3_result_text(context, id, -1, SQLITE_TRANSIENT);
	}
}

/* ---- The other functions for handlers ------------------------------------------------------- */

enum ibid_code lite_work_name(struct lite_tx *tx, sqlite3_value *value, const char *what,
                              const char *reason, struct ibid_err *err)
{
	const char *text = lite_work_text(value);
	enum ibid_code code = lite_work_check(value, what, err);
	if (code)
		return code;
	if (text && *text && sqlite3_value_bytes(value) <= NAME_BYTES_MAX)
		return IBID_OK;
	char *said = arena_printf(&tx->arena, "the %s is a text of 1 to %d bytes", what,
	                          NAME_BYTES_MAX);
	return lite_tx_reject(tx, reason, 422, said ? said : "", err);
}

/* Unlike emit and reject, which callbacks have in C, these are for lent handles, too. */
static struct lite_tx *handler_of(sqlite3_context *context, const char *name)
{
	struct lite_conn *conn = sqlite3_user_data(context);
	if (conn->tx && conn->mode == LITE_LENT && !conn->tx->doom.code)
		return conn->tx;
	return work_of(context, name);
}

static void work_call(sqlite3_context *context, const char *name, lite_work_fn *fn,
                      struct lite_work_args args)
{
	struct lite_tx *tx = handler_of(context, name);
	struct str answer = STR_INIT(JSON_BYTES_MAX);
	struct ibid_err err;
	if (!tx)
		return;
	enum lite_mode mode = tx->conn->mode;
	tx->conn->mode = LITE_OURS; /* the handler is in the middle of a statement */
	enum ibid_code code = fn(tx, args, &answer, &err);
	tx->conn->mode = mode;
	if (!code && (answer.failed || tx->arena.failed))
		code = err_set(&err, IBID_NOMEM, "out of memory");
	if (code)
		stop(context, tx, &err);
	else if (answer.size)
		sqlite3_result_text(context, str_text(&answer), (int)answer.size, SQLITE_TRANSIENT);
	str_release(&answer);
}

/* X(name, arguments at least, at most): lite_name is ibid_name. */
#define WORK_FUNCTIONS(X)                                                                          \
	X(link_reference, 4, 4)                                                                        \
	X(find_reference, 2, 2)                                                                        \
	X(find_external, 2, 2)                                                                         \
	X(post, 2, 4)                                                                                  \
	X(move, 3, 5)

#define WORK_FUNCTION(name, least, most)                                                           \
	static void name(sqlite3_context *context, int count, sqlite3_value **values)                  \
	{                                                                                              \
		work_call(context, "ibid_" #name, lite_##name,                                             \
		          (struct lite_work_args){.count = count, .values = values});                      \
	}
WORK_FUNCTIONS(WORK_FUNCTION)
#undef WORK_FUNCTION

int lite_functions_register_work(struct lite_conn *conn)
{
	static const struct {
		const char *name;
		int least, most;
		void (*function)(sqlite3_context *, int, sqlite3_value **);
	} rows[] = {{"ibid_reject", 3, 3, reject},
	            {"ibid_emit", 4, 6, emit},
	            {"ibid_define_machine", 2, 2, lite_define_machine},
#define WORK_ROW(name, least, most) {"ibid_" #name, (least), (most), name},
	            WORK_FUNCTIONS(WORK_ROW)
#undef WORK_ROW
	};
	int rc = SQLITE_OK;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int count = rows[i].least; !rc && count <= rows[i].most; count++)
			rc = sqlite3_create_function_v2(conn->db, rows[i].name, count, FLAGS, conn,
			                                rows[i].function, NULL, NULL, NULL);
	return rc;
}
