/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c -- from what a caller sent to an identity and a fingerprint. Touches no store. */
#include "base/canon.h"
#include "base/traceparent.h"
#include "command/submission.h"

#include <string.h>

enum {
	PAYLOAD_BYTES_MAX = 4 << 20,
	CANONICAL_GROWTH = 6, /* 1e20 is four bytes and 21 in canonical form */
};
_Static_assert((int)PAYLOAD_BYTES_MAX <= (int)JSON_BYTES_MAX,
               "an accepted payload must be readable");

void submission_init(struct submission *sub, struct ledger *ledger)
{
	*sub = (struct submission){
	    .ledger = ledger, .id = uuid_v7(ledger->env), .correlation_id = "", .causation_id = ""};
}

void submission_release(struct submission *sub)
{
	arena_release(&sub->attempt);
	arena_release(&sub->arena);
}

static struct ibid_command command_of(const struct ibid_command *command)
{
	struct ibid_command copy = {0};
	memcpy(&copy, command, command->size < sizeof copy ? command->size : sizeof copy);
	return copy;
}

static enum ibid_code optional_name(struct submission *sub, const char *what, const char *given,
                                    const char **ret, struct ibid_err *err)
{
	*ret = "";
	if (!given || !*given)
		return IBID_OK;
	enum ibid_code code = name_check(what, given, err);
	if (!code)
		*ret = arena_strdup(&sub->arena, given);
	return code;
}

static enum ibid_code read_trace(struct submission *sub, const struct ibid_command *command,
                                 struct ibid_err *err)
{
	const char *parent = command->traceparent ? command->traceparent : "";
	const char *state = command->tracestate ? command->tracestate : "";
	struct traceparent traceparent;
	char text[TRACEPARENT_SIZE];
	if (!*parent)
		return *state ? err_set(err, IBID_INVALID, "tracestate without a traceparent") : IBID_OK;
	if (!traceparent_read(parent, &traceparent))
		return err_set(err, IBID_INVALID,
		               "traceparent is not one of W3C trace context: 00-<32 hex digits>-<16>-<2>, "
		               "in lower case, neither id all zero");
	if (!tracestate_fits(state))
		return err_set(err, IBID_INVALID,
		               "tracestate is longer than %d bytes or not printable ASCII",
		               TRACESTATE_BYTES_MAX);
	traceparent_write(&traceparent, text);
	sub->traceparent = arena_strdup(&sub->arena, text);
	sub->tracestate = *state ? arena_strdup(&sub->arena, state) : NULL;
	return IBID_OK;
}

static enum ibid_code read_names(struct submission *sub, const struct ibid_command *command,
                                 struct ibid_err *err)
{
	enum ibid_code code = name_check("tenant", command->tenant ? command->tenant : "", err);
	if (code)
		return code;
	sub->sender.tenant = arena_strdup(&sub->arena, command->tenant);
	code = optional_name(sub, "client", command->client, &sub->sender.client, err);
	if (!code)
		code = optional_name(sub, "actor", command->actor, &sub->sender.actor, err);
	if (!code)
		code = optional_name(sub, "resource", command->resource, &sub->sender.resource, err);
	if (!code)
		code = optional_name(sub, "correlation id", command->correlation_id, &sub->correlation_id,
		                     err);
	if (!code)
		code = optional_name(sub, "causation id", command->causation_id, &sub->causation_id, err);
	return code;
}

static enum ibid_code read_payload(struct submission *sub, const struct ibid_command *command,
                                   struct ibid_err *err)
{
	if (!command->payload)
		return err_set(err, IBID_INVALID, "the command has no payload");
	size_t size = command->payload_size ? command->payload_size : strlen(command->payload);
	enum ibid_code code = json_read(&sub->arena, command->payload, size, PAYLOAD_BYTES_MAX,
	                                &sub->payload, err);
	if (code) {
		err_prefix(err, "payload");
		return code;
	}
	struct str text = STR_INIT(CANONICAL_GROWTH * (size_t)PAYLOAD_BYTES_MAX);
	canon_write(&text, sub->payload);
	sub->canonical = text.failed ? NULL : arena_strndup(&sub->arena, text.data, text.size);
	str_release(&text);
	return sub->canonical ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

enum ibid_code submission_prepare(struct submission *sub, const struct ibid_command *given,
                                  struct ibid_err *err)
{
	struct ibid_command command = command_of(given);
	const char *name = command.operation ? command.operation : "";
	sub->operation = ledger_operation(sub->ledger, name);
	if (!sub->operation)
		return err_set(
		    err, IBID_NOT_FOUND,
		    "no contract for operation \"%.100s\" in %s; `ibid contract matrix` shows the "
		    "operations that there are",
		    name, contracts_dir(sub->ledger->contracts));
	sub->contract = sub->operation->contract;
	sub->script = sub->operation->script;
	sub->handler = sub->operation->handler;
	sub->user = sub->operation->user;
	enum ibid_code code = read_names(sub, &command, err);
	if (!code)
		code = read_trace(sub, &command, err);
	if (!code)
		code = read_payload(sub, &command, err);
	if (code)
		return code;
	sub->identity.tenant = sub->sender.tenant;
	sub->identity.operation = sub->contract->name;
	code = scope_of(&sub->arena, sub->contract, &sub->sender, &sub->identity.scope, err);
	if (!code)
		code = key_of(&sub->arena, sub->contract, sub->sender.tenant, command.key, sub->payload,
		              &sub->identity.key, err);
	if (!code)
		code = fingerprint_of(&sub->arena, sub->contract, &sub->sender, sub->payload,
		                      &sub->fingerprint, err);
	if (!code && sub->arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	return code;
}
