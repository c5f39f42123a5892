/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/setting.h"

#include "base/instant.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES_MAX = 400 };

static bool is_it(const struct setting *setting, const char *name)
{
	size_t size = strlen(setting->name);
	if (setting->type != SETTING_EACH)
		return strcmp(setting->name, name) == 0;
	return strncmp(setting->name, name, size) == 0 && name[size] == '.' && name[size + 1];
}

static enum ibid_code refuse_unknown(const struct broker_options *options, const char *name,
                                     const struct setting *table, struct ibid_err *err)
{
	struct str names = STR_INIT(NAMES_BYTES_MAX);
	for (const struct setting *setting = table; setting->name; setting++)
		str_addf(&names, "%s%s%s", names.size ? ", " : "", setting->name,
		         setting->type == SETTING_EACH ? ".NAME" : "");
	enum ibid_code code = err_set(err, IBID_INVALID,
	                              "destination %s has no setting `%s`; there are %s", options->name,
	                              name, str_text(&names));
	str_release(&names);
	return code;
}

static enum ibid_code refuse_value(const struct broker_options *options,
                                   const struct setting *setting,
                                   const struct broker_setting *given, struct ibid_err *err)
{
	if (setting->type == SETTING_SECRET || setting->type == SETTING_EACH)
		return err_set(err, IBID_INVALID, "destination %s: `%s` must be %s", options->name,
		               given->name, setting->right);
	return err_set(err, IBID_INVALID, "destination %s: `%s` is `%s`: it must be %s", options->name,
	               given->name, given->value, setting->right);
}

static bool read_number(const char *text, int64_t *ret)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	*ret = number;
	return !*end && !errno;
}

static bool read_choice(const char *text, bool *ret)
{
	bool yes = strcmp(text, "yes") == 0 || strcmp(text, "true") == 0;
	*ret = yes;
	return yes || strcmp(text, "no") == 0 || strcmp(text, "false") == 0;
}

static bool add_each(const struct setting *setting, const struct broker_setting *given,
                     struct arena *arena, struct setting_each *ret)
{
	if (ret->count == SETTING_EACH_MAX)
		return false;
	ret->items[ret->count++] = (struct broker_setting){
	    .name = arena_strdup(arena, given->name + strlen(setting->name) + 1),
	    .value = arena_strdup(arena, given->value)};
	return true;
}

static bool fill_one(const struct setting *setting, const struct broker_setting *given,
                     struct arena *arena, void *ret)
{
	void *to = (char *)ret + setting->at;
	int64_t number = 0;
	switch (setting->type) {
	case SETTING_DURATION:
	case SETTING_NUMBER:
		if (setting->type == SETTING_NUMBER ? !read_number(given->value, &number)
		                                    : !duration_read(given->value, &number))
			return false;
		*(int64_t *)to = number;
		return number >= setting->min && number <= setting->max;
	case SETTING_CHOICE: return read_choice(given->value, to);
	case SETTING_EACH: return add_each(setting, given, arena, to);
	default: *(const char **)to = arena_strdup(arena, given->value); return *given->value != 0;
	}
}

static bool stands_before(const struct broker_options *options, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(options->settings[i].name, options->settings[at].name) == 0)
			return true;
	return false;
}

enum ibid_code settings_fill(const struct broker_options *options, const struct setting *table,
                             struct arena *arena, void *ret, struct ibid_err *err)
{
	for (size_t i = 0; i < options->setting_count; i++) {
		const struct broker_setting *given = &options->settings[i];
		const struct setting *setting = table;
		while (setting->name && !is_it(setting, given->name))
			setting++;
		if (!setting->name)
			return refuse_unknown(options, given->name, table, err);
		if (stands_before(options, i))
			return err_set(err, IBID_INVALID, "destination %s: `%s` stands there twice",
			               options->name, given->name);
		if (!fill_one(setting, given, arena, ret))
			return refuse_value(options, setting, given, err);
	}
	return arena->failed ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
}
