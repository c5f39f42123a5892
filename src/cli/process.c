/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process.h"

enum { NAMED = 4 };

/* --store, --contracts and the like are settings like any other. */
static size_t settings_given(struct arena *arena, const struct args *args,
                             const char *ret[OPERANDS_MAX + NAMED])
{
	static const struct {
		enum option option;
		const char *setting;
	} named[NAMED] = {{OPT_STORE, "store"},
	                  {OPT_CONTRACTS, "contracts"},
	                  {OPT_UPSTREAM, "upstream.url"},
	                  {OPT_METRICS_LISTEN, "relay.metrics_listen"}};
	size_t count = 0;
	for (size_t i = 0; i < NAMED; i++)
		if (args_has(args, named[i].option))
			ret[count++] = arena_printf(arena, "%s=%s", named[i].setting,
			                            args->values[named[i].option]);
	for (size_t i = 0; i < args->operand_count; i++)
		ret[count++] = args->operands[i];
	return count;
}

enum ibid_code process_settings(struct arena *arena, const struct args *args, struct settings *ret,
                                struct ibid_err *err)
{
	const char *given[OPERANDS_MAX + NAMED];
	size_t count = settings_given(arena, args, given);
	return arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                     : settings_read(arena, args->values[OPT_CONFIG], given, count, ret, err);
}
