/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c -- what is kept of a payload with its command, and how it is read again.
 *
 * Most contracts keep nothing, and then nothing is done here. What is kept is written by the
 * statement after the row's, in its transaction (I1): also a command that was rejected, failed or
 * is only staged can be looked into. */
#include "command/keep.h"

#include "base/utf8.h"
#include "command/exception.h"
#include "command/submission.h"
#include "contract/classes.h"

#include <string.h>

enum { KEPT_BYTES_MAX = 128 << 20 };

enum ibid_code keep_check_keys(const struct contracts *contracts, const struct keyring *keys,
                               struct ibid_err *err)
{
	for (size_t i = 0; !keys && i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		if (classes_encrypt(contract))
			return err_set(err, IBID_CONTRACT,
			               "%s/%s: payloads of %s are kept encrypted, and no key file was given "
			               "(--key-file, IBID_KEY_FILE or the option key_file)",
			               contracts_dir(contracts), contract->file, contract->name);
	}
	return IBID_OK;
}

/* What sealing and opening need to know beside the text. */
struct box {
	const struct keyring *keys;
	struct env *env;
	struct seal_place place;
};

static enum ibid_code seal(void *user, const char *pointer, const char *text, size_t size,
                           struct str *out, struct ibid_err *err)
{
	struct box *box = user;
	if (!box->keys) /* a contract that came after keep_check_keys: from the store */
		return err_set(err, IBID_CONTRACT,
		               "the payload is kept encrypted, and no key file was given (--key-file, "
		               "IBID_KEY_FILE or the option key_file)");
	box->place.pointer = pointer;
	return keyring_seal(box->keys, box->env, &box->place, text, size, out, err);
}

static enum ibid_code open_sealed(void *user, const char *pointer, const char *text, size_t size,
                                  struct str *out, struct ibid_err *err)
{
	struct box *box = user;
	box->place.pointer = pointer;
	return keyring_open(box->keys, &box->place, text, size, out, err);
}

/* Whoever ends a staged command finds its payload kept: by the row that staged it. */
static bool writes_payload(const struct submission *sub, const struct command_row *previous)
{
	if (!sub->payload || submission_holds_lease(sub))
		return false;
	/* What another version kept of an earlier run must not stay beside this one. */
	return sub->contract->payload != CLASS_OMIT ||
	       (previous && previous->contract_version != sub->contract->version);
}

enum ibid_code keep_payload(struct submission *sub, const struct command_row *row,
                            const struct command_row *previous, bool *ret_writes,
                            struct payload_row *ret, struct ibid_err *err)
{
	struct payload_row payload = {.tenant = row->identity.tenant, .command_id = row->id};
	struct box box = {sub->ledger->keys, sub->ledger->env, {payload.tenant, row->id, ""}};
	enum ibid_code code = IBID_OK;
	*ret_writes = writes_payload(sub, previous);
	if (*ret_writes && sub->contract->payload != CLASS_OMIT)
		code = payload_keep(&sub->attempt, sub->contract, sub->payload, seal, &box, &payload.text,
		                    &payload.size, err);
	if (!code)
		*ret = payload;
	return code;
}

enum ibid_code keep_row(struct submission *sub, struct tx *tx, const struct command_row *row,
                        const struct command_row *previous, struct ibid_err *err)
{
	struct payload_row payload;
	bool writes = false;
	enum ibid_code code = tx->store->ops->put_command(tx, row, previous, err);
	if (!code && previous && previous->state == COMMAND_UNKNOWN)
		code = command_exception_end(tx, &sub->attempt, row, sub->by_person, err);
	if (!code)
		code = keep_payload(sub, row, previous, &writes, &payload, err);
	return !code && writes ? store_put_payload(tx, &payload, err) : code;
}

const char *keep_text(struct submission *sub, const char *text)
{
	return payload_scrub(&sub->arena, sub->contract, sub->payload, text);
}

/* ---- A service's answer --------------------------------------------------------------------- */

/* No pointer leads to it: it is no part of the payload, and sealed for itself. */
static const char answer_place[] = "service answer";

/* The class of the payload's values in the service's words. Where nothing is kept of the payload,
 * none of them stands there; where it is sealed, the words are. */
static enum field_class class_in_answer(enum field_class payload)
{
	switch (payload) {
	case CLASS_OMIT: return CLASS_REDACT;
	case CLASS_ENCRYPT: return CLASS_STORE; /* but for fields with a class of their own */
	default: return payload;
	}
}

static const char *seal_answer(struct submission *sub, const struct command_row *row,
                               const char *text)
{
	const struct seal_place place = {row->identity.tenant, row->id, answer_place};
	const struct keyring *keys = sub->ledger->keys;
	struct str sealed = STR_INIT(KEPT_BYTES_MAX);
	struct ibid_err err = {0};
	const char *kept = NULL; /* it is kept sealed or not at all */
	if (keys && !keyring_seal(keys, sub->ledger->env, &place, text, strlen(text), &sealed, &err))
		kept = arena_strndup(&sub->attempt, str_text(&sealed), sealed.size);
	str_release(&sealed);
	return kept;
}

const char *keep_service_answer(struct submission *sub, const struct command_row *row,
                                const char *answer)
{
	struct contract contract = *sub->contract;
	if (!answer || !*answer || !sub->payload)
		return NULL;
	contract.payload = class_in_answer(sub->contract->payload);
	size_t size = strlen(answer), fits = utf8_fit(answer, size, SERVICE_ANSWER_BYTES_MAX);
	const char *text = payload_scrub(&sub->attempt, &contract, sub->payload,
	                                 arena_strndup(&sub->attempt, answer, fits));
	if (text && fits < size)
		text = arena_printf(&sub->attempt, "%s [cut off]", text);
	return text && sub->contract->payload == CLASS_ENCRYPT ? seal_answer(sub, row, text) : text;
}

const char *keep_read_service_answer(struct arena *arena, const struct exception_row *row,
                                     const struct keyring *keys)
{
	struct seal_place place = {.tenant = row->tenant, .pointer = answer_place};
	struct str opened = STR_INIT(KEPT_BYTES_MAX);
	struct ibid_err err = {0};
	const char *text = row->service_answer;
	/* What does not open is no ciphertext of ours, or was sealed under another key. */
	if (text && keys && uuid_read(row->subject_id, &place.command_id) &&
	    !keyring_open(keys, &place, text, strlen(text), &opened, &err))
		text = arena_strndup(arena, str_text(&opened), opened.size);
	str_release(&opened);
	return text;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static enum ibid_code open_kept(struct arena *arena, const struct contract *contract,
                                const struct payload_row *payload, const struct keyring *keys,
                                const char **ret, size_t *ret_size, struct ibid_err *err)
{
	struct json *kept = NULL;
	struct box box = {keys, NULL, {payload->tenant, payload->command_id, ""}};
	enum ibid_code code = json_read(arena, payload->text, payload->size, KEPT_BYTES_MAX, &kept,
	                                err);
	return code ? code : payload_open(arena, contract, kept, open_sealed, &box, ret, ret_size, err);
}

enum ibid_code keep_read(struct store *store, struct arena *arena, const struct command_row *row,
                         const struct keyring *keys, const char **ret, size_t *ret_size,
                         struct ibid_err *err)
{
	struct payload_row payload = {0};
	struct contract_row kept;
	struct contract *contract = NULL;
	enum ibid_code code = store_get_payload(store, arena, row->identity.tenant, &row->id, &payload,
	                                        err);
	if (!code && keys)
		code = store_get_contract(store, arena, "command", row->identity.operation,
		                          row->contract_version, &kept, err);
	if (code == IBID_NOT_FOUND && payload.text)
		code = err_set(err, IBID_CONTRACT, "version %d of the contract of %s is not in the store",
		               row->contract_version, row->identity.operation);
	if (!code && keys)
		code = contract_from_text(arena, kept.text, &contract, err);
	if (!code && contract && classes_encrypt(contract))
		return open_kept(arena, contract, &payload, keys, ret, ret_size, err);
	if (!code) {
		*ret = payload.text;
		*ret_size = payload.size;
	}
	return code;
}
