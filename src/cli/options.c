/* SPDX-License-Identifier: Apache-2.0 */
/* options.c -- read a command line by the table: `--name value`, `--name=value`, `--`, operands.
 *
 * Nothing is guessed: an option that the command does not take, one given twice and one without its
 * value are refused, because a command line that half works may pay the wrong amount. */
#include "cli/options.h"

#include "cli/cli.h"
#include "cli/output.h"
#include "http/settings.h"

#include <stdlib.h>
#include <string.h>

const struct option_spec option_specs[OPT_COUNT] = {
#define CLI_OPTION_SPEC(symbol, name, value, environment, meaning)                                 \
	[OPT_##symbol] = {name, value, environment, meaning},
    CLI_OPTIONS(CLI_OPTION_SPEC)
#undef CLI_OPTION_SPEC
};

/* What a settings file can say of a command that runs once. */
enum { IN_FILE = 3 };
static const struct {
	enum option option;
	size_t offset;
} in_file[IN_FILE] = {
    {OPT_STORE, offsetof(struct settings, store)},
    {OPT_CONTRACTS, offsetof(struct settings, contracts)},
    {OPT_KEY_FILE, offsetof(struct settings, key_file)},
};

bool takes_option(const struct cli_command *command, enum option option)
{
	const uint64_t named = BIT(OPT_STORE) | BIT(OPT_CONTRACTS) | BIT(OPT_KEY_FILE);
	return command->takes & (option == OPT_CONFIG ? named : BIT(option));
}

const char *option_meaning(const struct cli_command *command, enum option option)
{
	const char *here = command->meanings[option];
	if (!here && option == OPT_TENANT && !(command->needs & BIT(OPT_TENANT)))
		here = "only what is this tenant's (of all tenants)";
	return here ? here : option_specs[option].meaning;
}

enum { WORD_MAX = 32, NEAR_ENOUGH = 2 };

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;
	return ab < c ? ab : c;
}

/* Letters to insert, drop or change. Words longer than WORD_MAX are no slip of a known one. */
static size_t distance(const char *a, const char *b)
{
	size_t a_size = strlen(a), b_size = strlen(b), row[WORD_MAX + 1];
	if (a_size > WORD_MAX || b_size > WORD_MAX)
		return WORD_MAX;
	for (size_t k = 0; k <= b_size; k++)
		row[k] = k;
	for (size_t i = 0; i < a_size; i++) {
		size_t corner = row[0];
		row[0] = i + 1;
		for (size_t k = 0; k < b_size; k++) {
			size_t above = row[k + 1];
			row[k + 1] = least(above + 1, row[k] + 1, corner + (a[i] != b[k]));
			corner = above;
		}
	}
	return row[b_size];
}

const char *nearest(const char *given, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t best_distance = NEAR_ENOUGH + 1;
	for (size_t i = 0; i < count; i++) {
		size_t d = distance(given, names[i]);
		/* Otherwise every two-letter word is near every other one. */
		if (d < best_distance && d < strlen(names[i])) {
			best = names[i];
			best_distance = d;
		}
	}
	return best;
}

static int unknown_option(const struct cli_command *command, const char *arg, size_t name_size)
{
	const char *names[OPT_COUNT + 1];
	char given[WORD_MAX + 2] = "";
	size_t count = 0;
	for (int i = 0; i < OPT_COUNT; i++) {
		if (takes_option(command, (enum option)i))
			names[count++] = option_specs[i].name;
	}
	names[count++] = "help";
	strncat(given, arg + 2, name_size < sizeof given - 1 ? name_size : sizeof given - 1);
	const char *near = nearest(given, names, count);
	if (near)
		return usage_error(command, "unknown option --%.*s; did you mean --%s?", (int)name_size,
		                   arg + 2, near);
	return usage_error(command, "unknown option --%.*s", (int)name_size, arg + 2);
}

static int find_option(const struct cli_command *command, const char *name, size_t size)
{
	for (int i = 0; i < OPT_COUNT; i++) {
		const char *known = option_specs[i].name;
		if (takes_option(command, (enum option)i) && strlen(known) == size &&
		    memcmp(known, name, size) == 0)
			return i;
	}
	return -1;
}

/* One option at argv[*at]; moves `*at` to its last word. */
static bool read_option(struct args *args, int argc, char *const *argv, int *at)
{
	const struct cli_command *command = args->command;
	const char *arg = argv[*at], *equals = strchr(arg, '=');
	size_t size = equals ? (size_t)(equals - arg) - 2 : strlen(arg) - 2;
	int option = find_option(command, arg + 2, size);
	if (option < 0)
		return unknown_option(command, arg, size) == CLI_OK;
	const struct option_spec *spec = &option_specs[option];
	if (args->values[option])
		return usage_error(command, "--%s was given twice", spec->name) == CLI_OK;
	if (!spec->value) {
		args->values[option] = "";
		return !equals || usage_error(command, "--%s takes no value", spec->name) == CLI_OK;
	}
	if (equals) {
		args->values[option] = equals + 1;
		return true;
	}
	if (*at + 1 >= argc)
		return usage_error(command, "--%s needs a value: --%s %s", spec->name, spec->name,
		                   spec->value) == CLI_OK;
	const char *value = argv[++*at];
	/* `--key --json` is a forgotten value; one that does begin so is written with an equals sign.
	 */
	if (strncmp(value, "--", 2) == 0)
		return usage_error(command, "--%s needs a value before %.100s (or write --%s=%.100s)",
		                   spec->name, value, spec->name, value) == CLI_OK;
	args->values[option] = value;
	return true;
}

static bool read_operand(struct args *args, const char *arg)
{
	const struct cli_command *command = args->command;
	if (args->operand_count == command->operand_max)
		return usage_error(command, "unexpected argument \"%.100s\"", arg) == CLI_OK;
	args->operands[args->operand_count++] = arg;
	return true;
}

static void fill_from_environment(struct args *args)
{
	for (int i = 0; i < OPT_COUNT; i++) {
		const char *variable = option_specs[i].environment, *value = args->values[i];
		if (!variable || !takes_option(args->command, (enum option)i))
			continue;
		if (!value && (value = getenv(variable)))
			args->from_environment |= BIT(i);
		/* An empty one is an unset variable of somebody's script. */
		args->values[i] = value && *value ? value : NULL;
	}
}

/* Read only where something is left to say: who gives all options needs no file. */
static bool fill_from_file(struct args *args)
{
	const char *file = args->values[OPT_CONFIG];
	struct settings settings;
	struct ibid_err err = {0};
	bool complete = true;
	for (size_t i = 0; i < IN_FILE; i++)
		complete = complete && (args->values[in_file[i].option] ||
		                        !takes_option(args->command, in_file[i].option));
	if (!file || complete || args->command->settings)
		return true;
	if (settings_of_file(&args->arena, file, &settings, &err)) {
		(void)say_err(&err);
		return false;
	}
	for (size_t i = 0; i < IN_FILE; i++)
		if (!args->values[in_file[i].option] && takes_option(args->command, in_file[i].option))
			args->values[in_file[i].option] = *(const char **)((char *)&settings +
			                                                   in_file[i].offset);
	return true;
}

int usage_missing(const struct args *args, enum option option)
{
	const struct option_spec *spec = &option_specs[option];
	const char *meaning = option_meaning(args->command, option);
	if (!spec->environment)
		return usage_error(args->command, "--%s is missing: give --%s %s (%s)", spec->name,
		                   spec->name, spec->value, meaning);
	return usage_error(args->command,
	                   "no %s: give --%s %s, set %s, or name a settings file that has `%s` by "
	                   "--config FILE (%s)",
	                   spec->name, spec->name, spec->value, spec->environment, spec->name, meaning);
}

/* The first that is missing: it is enough to say one thing at a time. */
static bool check_needs(const struct args *args)
{
	for (int i = 0; i < OPT_COUNT; i++)
		if ((args->command->needs & BIT(i)) && !args->values[i])
			return usage_missing(args, (enum option)i) == CLI_OK;
	return true;
}

enum args_kind args_read(const struct cli_command *command, int argc, char *const *argv,
                         struct args *ret)
{
	bool options = true;
	*ret = (struct args){.command = command};
	for (int i = 0; i < argc; i++) {
		const char *arg = argv[i];
		bool ok;
		if (!options || arg[0] != '-' || !arg[1]) {
			ok = read_operand(ret, arg);
		} else if (strcmp(arg, "--") == 0) {
			options = false;
			continue;
		} else if (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0) {
			return ARGS_HELP;
		} else if (arg[1] != '-') {
			ok = usage_error(command, "unknown option %.100s: options are written --name", arg) ==
			     CLI_OK;
		} else {
			ok = read_option(ret, argc, argv, &i);
		}
		if (!ok)
			return ARGS_BAD;
	}
	fill_from_environment(ret);
	if (!fill_from_file(ret))
		return ARGS_FAILED;
	return check_needs(ret) ? ARGS_OK : ARGS_BAD;
}

void args_release(struct args *args)
{
	arena_release(&args->arena);
}
