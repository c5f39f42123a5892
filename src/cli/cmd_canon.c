/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_canon.c -- what a JSON text means: its canonical form, and its fingerprint under a contract.
 */
#include "base/canon.h"
#include "cli/cli.h"
#include "cli/output.h"

static enum ibid_code read_json(struct arena *arena, const char *file, struct json **ret,
                                struct ibid_err *err)
{
	const char *bytes = NULL;
	size_t size = 0;
	enum ibid_code code = input_read(arena, file, &bytes, &size, err);
	if (code)
		return code;
	code = json_read(arena, bytes, size, 0, ret, err);
	if (code)
		err_prefix(err, "%.200s", input_name(file));
	return code;
}

int cmd_canon(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct json *value = NULL;
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	int exit = CLI_OK;
	if (read_json(&arena, args->operands[0], &value, &err)) {
		exit = say_err(&err);
	} else {
		canon_write(&out, value);
		if (out.failed)
			exit = say_no_memory();
		else
			out_bytes(str_text(&out), out.size);
	}
	str_release(&out);
	arena_release(&arena);
	return exit;
}

/* ---- fingerprint ---------------------------------------------------------------------------- */

static bool print_fingerprint(const struct args *args, const struct contract *contract,
                              const char *hashed, size_t size)
{
	struct sha256 hash = sha256(hashed, size);
	char hex[SHA256_TEXT_SIZE];
	bool explain = args_has(args, OPT_EXPLAIN), ok = true;
	sha256_write(&hash, hex);
	if (args_has(args, OPT_JSON)) {
		struct str out = STR_INIT(OUTPUT_BYTES_MAX);
		obj_begin(&out, NULL, '{');
		obj_text(&out, "fingerprint", hex);
		obj_int(&out, "scheme", FINGERPRINT_SCHEME);
		obj_int(&out, "version", contract->version);
		obj_text(&out, "operation", contract->name);
		if (explain)
			obj_text(&out, "hashed", hashed);
		obj_end(&out, '}');
		ok = out_line(&out);
		str_release(&out);
	} else if (explain) {
		out_bytes(hashed, size);
	} else {
		out_textf("%s\n", hex);
	}
	return ok;
}

static enum ibid_code hashed_text(struct arena *arena, const struct args *args,
                                  const struct contracts *contracts,
                                  const struct contract **ret_contract, const char **ret,
                                  size_t *ret_size, struct ibid_err *err)
{
	const char *operation = args->values[OPT_OPERATION];
	struct sender sender = sender_of(arena, args);
	struct json *payload = NULL;
	*ret_contract = contracts_find(contracts, operation);
	if (!*ret_contract)
		return err_set(
		    err, IBID_NOT_FOUND,
		    "no contract for operation \"%.100s\" in %s; `ibid contract matrix` shows the "
		    "operations that there are",
		    operation, contracts_dir(contracts));
	enum ibid_code code = name_check("tenant", sender.tenant, err);
	if (!code)
		code = read_json(arena, args->operands[0], &payload, err);
	if (!code)
		code = fingerprint_text(arena, *ret_contract, &sender, payload, ret, ret_size, err);
	return code;
}

int cmd_fingerprint(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct contracts *contracts = NULL;
	const struct contract *contract = NULL;
	const char *hashed = NULL;
	size_t size = 0;
	int exit = CLI_OK;
	enum ibid_code code = load_contracts(args->values[OPT_CONTRACTS], &contracts, &err);
	if (!code)
		code = hashed_text(&arena, args, contracts, &contract, &hashed, &size, &err);
	if (code)
		exit = say_err(&err);
	else if (!print_fingerprint(args, contract, hashed, size))
		exit = CLI_ERROR;
	contracts_free(contracts);
	arena_release(&arena);
	return exit;
}
