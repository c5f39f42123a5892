/* SPDX-License-Identifier: Apache-2.0 */
/* help.c -- help and usage, printed from the tables, so that they can't drift from the program. */
#include "cli/cli.h"
#include "cli/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USAGE_COLUMNS = 80 };

static void heading(const char *text)
{
	out_text("\n");
	out_painted(PAINT_HEAD, text);
	out_text("\n");
}

static void command_line(const struct cli_command *command)
{
	out_textf("  %-18s  %s\n", command->name, command->summary);
}

void help_overview(void)
{
	out_text("ibid -- the same intent, however often it arrives, ends in one outcome\n\n"
	         "usage: ibid COMMAND [options]\n");
	heading("commands");
	for (const struct cli_command *command = cli_commands; command->name; command++)
		command_line(command);
	heading("exit codes");
#define EXIT_LINE(symbol, number, meaning) out_textf("  %d  %s\n", number, meaning);
	CLI_EXITS(EXIT_LINE)
#undef EXIT_LINE
	out_text(
	    "\nIBID_STORE and IBID_CONTRACTS stand in for --store and --contracts, and the settings\n"
	    "`store` and `contracts` of the file of --config (or IBID_CONFIG) for both.\n"
	    "`ibid COMMAND --help` explains a command and shows examples.\n");
}

bool help_group(const char *group)
{
	size_t size = strlen(group), found = 0;
	for (const struct cli_command *command = cli_commands; command->name; command++) {
		if (strncmp(command->name, group, size) != 0 || command->name[size] != ' ')
			continue;
		if (!found++)
			out_textf("usage: ibid %s COMMAND [options]\n\n", group);
		command_line(command);
	}
	return found;
}

/* One word of the usage line, on a new line when it does not fit any more. */
static void usage_word(size_t *column, const char *word)
{
	size_t size = strlen(word);
	if (*column + 1 + size > USAGE_COLUMNS) {
		out_text("\n      ");
		*column = 6;
	}
	out_textf(" %s", word);
	*column += 1 + size;
}

static void usage_line(const struct cli_command *command)
{
	char word[USAGE_COLUMNS];
	size_t column = strlen("usage: ibid ") + strlen(command->name);
	out_textf("usage: ibid %s", command->name);
	for (int i = 0; i < OPT_COUNT; i++) {
		const struct option_spec *spec = &option_specs[i];
		bool needed = command->needs & BIT(i);
		if (!takes_option(command, (enum option)i))
			continue;
		snprintf(word, sizeof word, "%s--%s%s%s%s", needed ? "" : "[", spec->name,
		         spec->value ? " " : "", spec->value ? spec->value : "", needed ? "" : "]");
		usage_word(&column, word);
	}
	if (*command->operands)
		usage_word(&column, command->operands);
	out_text("\n");
}

static void option_line(const struct cli_command *command, enum option option)
{
	const struct option_spec *spec = &option_specs[option];
	char name[USAGE_COLUMNS];
	snprintf(name, sizeof name, "--%s%s%s", spec->name, spec->value ? " " : "",
	         spec->value ? spec->value : "");
	out_textf("  %-20s  %s", name, option_meaning(command, option));
	if (spec->environment)
		out_textf("; or %s", spec->environment);
	out_text("\n");
}

void help_command(const struct cli_command *command)
{
	usage_line(command);
	out_textf("\n%s\n", command->details);
	heading("options");
	for (int i = 0; i < OPT_COUNT; i++) {
		if (takes_option(command, (enum option)i))
			option_line(command, (enum option)i);
	}
	out_text("  --help, -h            this text\n");
	heading("examples");
	out_text(command->examples);
}

int usage_error(const struct cli_command *command, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	const char *shown = text ? text : "the command line is wrong";
	if (command)
		say("%s: %s\nTry `ibid %s --help`.", command->name, shown, command->name);
	else
		say("%s\nTry `ibid help`.", shown);
	free(text);
	return CLI_USAGE;
}
