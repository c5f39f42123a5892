/* SPDX-License-Identifier: Apache-2.0 */
/* ibid.c -- the public handles: open, close, register, submit. */
#include "api/api.h"
#include "base/canon.h"
#include "command/keep.h"
#include "command/script_check.h"
#include "retention/erase.h"

#include <stdlib.h>
#include <string.h>

#define STRINGIZE_(x) #x
#define STRINGIZE(x)  STRINGIZE_(x)

enum { CONNECTIONS_DEFAULT = 16, BUSY_MS_DEFAULT = 5000 };

const char *ibid_version(void)
{
	return STRINGIZE(IBID_VERSION_MAJOR) "." STRINGIZE(IBID_VERSION_MINOR) "." STRINGIZE(
	    IBID_VERSION_PATCH);
}

struct ibid_options api_options(const struct ibid_options *given)
{
	struct ibid_options options = {0};
	memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
	if (!options.connections)
		options.connections = CONNECTIONS_DEFAULT;
	if (!options.busy_ms)
		options.busy_ms = BUSY_MS_DEFAULT;
	return options;
}

struct store_options api_store_options(const struct ibid_options *options, struct env *env,
                                       bool create)
{
	return (struct store_options){
	    .url = options->store ? options->store : "",
	    .create = create,
	    .connections = options->connections,
	    .busy_ms = options->busy_ms,
	    .env = env,
	    .log = {options->log, options->log_user, env},
	};
}

static enum ibid_code load_contracts(const struct ibid_options *options, struct contracts **ret,
                                     struct ibid_err *err)
{
	if (!options->contracts || !*options->contracts)
		return err_set(
		    err, IBID_INVALID,
		    "no directory of contracts was given: ibid_open and ibid_init need the option "
		    "contracts");
	struct contracts *contracts = NULL;
	enum ibid_code code = contracts_load(options->contracts, &contracts, err);
	if (code)
		contracts_free(contracts);
	else
		*ret = contracts;
	return code;
}

enum ibid_code api_open(const struct ibid_options *given, const struct api_seams *seams,
                        struct ibid **ret, struct ibid_err *err)
{
	struct ibid_options options = api_options(given);
	struct env *env = seams && seams->env ? seams->env : env_system();
	struct store_options store_options = api_store_options(&options, env, false);
	struct contracts *contracts = NULL;
	struct store *store = NULL;
	struct keyring *keys = NULL;
	int version;
	struct ibid *ibid = calloc(1, sizeof *ibid);
	if (!ibid)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = load_contracts(&options, &contracts, err);
	if (!code && options.key_file && *options.key_file)
		code = keyring_read(options.key_file, &keys, err);
	if (!code)
		code = keep_check_keys(contracts, keys, err);
	if (!code)
		code = store_open(&store_options, &store, err);
	if (!code)
		code = store->ops->check_schema(store, &version, err);
	if (!code && seams && seams->checks_scripts)
		code = script_check_all(store, contracts, &store_options.log, err);
	if (code) {
		store_close(store);
		contracts_free(contracts);
		keyring_free(keys);
		free(ibid);
		return code;
	}
	if (seams && seams->wrap)
		store = seams->wrap(seams->user, store);
	code = ledger_open(store, contracts, env, store_options.log, options.busy_ms, options.queue,
	                   &ibid->ledger, err);
	if (code) {
		keyring_free(keys);
		free(ibid);
	} else {
		ibid->ledger->keys = keys;
		*ret = ibid;
	}
	return code;
}

enum ibid_code ibid_open(const struct ibid_options *options, struct ibid **ret,
                         struct ibid_err *err)
{
	struct ibid_err spare;
	return api_open(options, NULL, ret, err_or(err, &spare));
}

void ibid_close(struct ibid *ibid)
{
	if (!ibid)
		return;
	ledger_close(ibid->ledger);
	free(ibid);
}

enum ibid_code ibid_handle(struct ibid *ibid, const char *name, ibid_handler *handler, void *user,
                           struct ibid_err *err)
{
	struct ibid_err spare;
	err = err_or(err, &spare);
	struct operation *operation = ledger_operation(ibid->ledger, name);
	if (!operation)
		return err_set(err, IBID_NOT_FOUND, "no contract for operation \"%.100s\"", name);
	if (operation->script)
		return err_set(
		    err, IBID_MISUSE,
		    "the contract of %s names a script; write `handler: callback` to run it in C", name);
	if (operation->contract->upstream.given)
		return err_set(err, IBID_MISUSE,
		               "operation %s has `handler: upstream`: another service does its work, "
		               "called by `ibid proxy`",
		               name);
	if (operation->contract->staged.lease_us)
		return err_set(err, IBID_MISUSE,
		               "operation %s is staged: its work is done between ibid_stage and "
		               "ibid_staged_finish",
		               name);
	operation->handler = handler;
	operation->user = user;
	return IBID_OK;
}

enum ibid_code ibid_submit(struct ibid *ibid, const struct ibid_command *command,
                           struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	return ledger_submit(ibid->ledger, command, ret, err_or(err, &spare));
}

enum ibid_code ibid_stage(struct ibid *ibid, const struct ibid_command *command,
                          struct ibid_staged **ret_staged, struct ibid_result **ret,
                          struct ibid_err *err)
{
	struct ibid_err spare;
	return ledger_stage(ibid->ledger, command, ret_staged, ret, err_or(err, &spare));
}

enum ibid_code ibid_handle_inquiry(struct ibid *ibid, const char *name, ibid_inquirer *inquirer,
                                   void *user, struct ibid_err *err)
{
	struct ibid_err spare;
	err = err_or(err, &spare);
	struct operation *operation = ledger_operation(ibid->ledger, name);
	if (!operation)
		return err_set(err, IBID_NOT_FOUND, "no contract for operation \"%.100s\"", name);
	if (!operation->contract->staged.lease_us ||
	    operation->contract->staged.recover != RECOVER_INQUIRY)
		return err_set(err, IBID_MISUSE, "the contract of %s does not say `recover: inquiry`",
		               name);
	operation->inquire = inquirer;
	operation->inquire_user = user;
	return IBID_OK;
}

enum ibid_code ibid_recover(struct ibid *ibid, const struct ibid_recovery *recovery,
                            size_t *ret_count, struct ibid_err *err)
{
	struct ibid_err spare;
	return ledger_recover(ibid->ledger, recovery, ret_count, err_or(err, &spare));
}

enum ibid_code ibid_canonical(const char *json, size_t size, char **ret, size_t *ret_size,
                              struct ibid_err *err)
{
	struct ibid_err spare;
	struct arena arena = {0};
	struct json *value;
	struct str out = STR_INIT(6 * (size_t)JSON_BYTES_MAX); /* 1e20 grows to 21 bytes */
	err = err_or(err, &spare);
	enum ibid_code code = json_read(&arena, json, size, 0, &value, err);
	if (!code) {
		canon_write(&out, value);
		char *text = str_take(&out, ret_size);
		if (text)
			*ret = text;
		else
			code = err_set(err, IBID_NOMEM, "out of memory");
	}
	str_release(&out);
	arena_release(&arena);
	return code;
}

enum ibid_code ibid_payload(struct ibid *ibid, const char *tenant, const char *command_id,
                            char **ret, size_t *ret_size, struct ibid_err *err)
{
	struct ibid_err spare;
	struct arena arena = {0};
	struct command_row row;
	struct uuid id;
	const char *text = NULL;
	size_t size = 0;
	struct store *store = ibid->ledger->store;
	err = err_or(err, &spare);
	if (!tenant || !command_id || !uuid_read(command_id, &id))
		return err_set(err, IBID_INVALID, "a command is named by its tenant and its id");
	enum ibid_code code = ledger_check_process(ibid->ledger, err);
	if (!code)
		code = store_get_command(store, &arena, tenant, &id, NULL, &row, err);
	if (!code)
		code = keep_read(store, &arena, &row, ibid->ledger->keys, &text, &size, err);
	char *copy = code ? NULL : malloc(size + 1);
	if (!code && !copy)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code) {
		memcpy(copy, text, size);
		copy[size] = '\0';
		*ret = copy;
		*ret_size = size;
	}
	arena_release(&arena);
	return code;
}

enum ibid_code ibid_erase(struct ibid *ibid, const struct ibid_erasure *erasure, char **ret,
                          struct ibid_err *err)
{
	struct ibid_err spare;
	struct erasure_report report;
	err = err_or(err, &spare);
	enum ibid_code code = ledger_check_process(ibid->ledger, err);
	if (!code)
		code = ledger_erase(ibid->ledger->store, ibid->ledger->env, erasure, &report, err);
	if (code)
		return code;
	char *text = erasure_json(&report);
	if (!text)
		return err_set(err, IBID_NOMEM, "erased, but out of memory to tell");
	*ret = text;
	return IBID_OK;
}

void ibid_free(void *memory)
{
	free(memory);
}
