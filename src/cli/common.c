/* SPDX-License-Identifier: Apache-2.0 */
/* common.c -- what several subcommands do in the same way: open, load, say who sends and when. */
#include "api/api.h"
#include "base/instant.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASSWD_BYTES = 16 << 10 };

const char *user_name(struct arena *arena)
{
	char buffer[PASSWD_BYTES];
	struct passwd entry, *found = NULL;
	uid_t uid = geteuid();
	if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found && *found->pw_name)
		return arena_strdup(arena, found->pw_name);
	return arena_printf(arena, "uid-%lu", (unsigned long)uid);
}

struct sender sender_of(struct arena *arena, const struct args *args)
{
	const char *const *values = args->values;
	return (struct sender){
	    .tenant = values[OPT_TENANT] ? values[OPT_TENANT] : "",
	    .client = values[OPT_CLIENT] ? values[OPT_CLIENT] : "cli",
	    .actor = values[OPT_ACTOR] ? values[OPT_ACTOR] : user_name(arena),
	    .resource = values[OPT_RESOURCE] ? values[OPT_RESOURCE] : "",
	};
}

enum ibid_code find_actor(struct store *store, struct arena *arena, struct actor *ret,
                          struct ibid_err *err)
{
	const char *text = getenv("IBID_TOKEN");
	if (!text || !*text)
		return err_set(err, IBID_DENIED,
		               "who acts is proven by a token: set IBID_TOKEN (`ibid token create` makes "
		               "one)");
	enum ibid_code code = actor_of_text(store, arena, text, env_wall_us(env_system()), ret, err);
	return code == IBID_DENIED ? err_prefix(err, "IBID_TOKEN") : code;
}

enum ibid_code open_store(const struct args *args, bool create, bool schema, struct store **ret,
                          struct ibid_err *err)
{
	struct ibid_options options = api_options(IBID_OPTIONS(.store = args->values[OPT_STORE]));
	struct store_options store_options = api_store_options(&options, env_system(), create);
	struct store *store = NULL;
	int version;
	enum ibid_code code = store_open(&store_options, &store, err);
	if (!code && schema)
		code = store->ops->check_schema(store, &version, err);
	if (code)
		store_close(store);
	else
		*ret = store;
	return code;
}

const char *store_shown(struct arena *arena, const struct args *args)
{
	const char *shown = store_url_redacted(arena, args->values[OPT_STORE]);
	return shown ? shown : "";
}

enum ibid_code load_contracts(const char *dir, struct contracts **ret, struct ibid_err *err)
{
	struct contracts *contracts = NULL;
	enum ibid_code code = contracts_load(dir, &contracts, err);
	if (!code) {
		*ret = contracts;
		return IBID_OK;
	}
	contracts_free(contracts);
	return code;
}

const char *dir_of(const struct args *args)
{
	const char *dir = args->operand_count ? args->operands[0] : args->values[OPT_CONTRACTS];
	return dir && *dir ? dir : NULL;
}

int usage_no_dir(const struct args *args)
{
	return usage_error(
	    args->command,
	    "no directory of contracts: give DIR or --contracts DIR, set IBID_CONTRACTS, or name a "
	    "settings file that has `contracts` by --config FILE");
}
