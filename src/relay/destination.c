/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/destination.h"

#include <string.h>

typedef enum ibid_code broker_open(const struct broker_options *, struct broker **,
                                   struct ibid_err *);

static const struct {
	const char *name;
	broker_open *open;
} kinds[] = {
    {"kafka", broker_kafka_open},
    {"webhook", broker_webhook_open},
    {"file", broker_file_open},
};
enum { KINDS = sizeof kinds / sizeof *kinds, NAME_MAX_BYTES = 63 };

/* "NAME.rest": the rest, where the setting is of this destination. */
static const char *rest_of(const char *setting, const char *name, size_t size)
{
	return strncmp(setting, name, size) == 0 && setting[size] == '.' ? setting + size + 1 : NULL;
}

static bool is_name(const char *name, size_t size)
{
	return size && size <= NAME_MAX_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") >= size;
}

static int kind_of(const char *rest)
{
	for (int i = 0; i < KINDS; i++) {
		size_t size = strlen(kinds[i].name);
		if (strncmp(rest, kinds[i].name, size) == 0 && (rest[size] == '.' || !rest[size]))
			return i;
	}
	return -1;
}

/* What belongs to one destination: its kind's settings, and those of retrying. */
struct reading {
	struct destination *destination;
	struct broker_setting *settings;
	size_t count;
	int kind; /* -1: none yet */
};

static enum ibid_code read_one(struct reading *reading, const struct destination_setting *setting,
                               const char *rest, struct ibid_err *err)
{
	int kind = kind_of(rest);
	if (kind < 0) {
		enum ibid_code code = retry_setting_read(rest, setting->value, &reading->destination->retry,
		                                         err);
		return code ? err_prefix(err, "%s: relay.destinations.%s", setting->where, setting->name)
		            : IBID_OK;
	}
	if (reading->kind >= 0 && reading->kind != kind)
		return err_set(err, IBID_INVALID,
		               "%s: destination %s is a %s already: it can't be a %s, too", setting->where,
		               reading->destination->name, kinds[reading->kind].name, kinds[kind].name);
	reading->kind = kind;
	const char *own = rest + strlen(kinds[kind].name);
	if (*own == '.') /* otherwise it has none: `file:` with nothing in it */
		reading->settings[reading->count++] = (struct broker_setting){own + 1, setting->value};
	return IBID_OK;
}

static enum ibid_code open_one(struct arena *arena, const struct destination_setting *settings,
                               size_t setting_count, struct env *env, struct log log,
                               struct destination *ret, struct ibid_err *err)
{
	struct reading reading = {
	    .destination = ret,
	    .settings = arena_array(arena, setting_count, sizeof *reading.settings),
	    .kind = -1,
	};
	enum ibid_code code = reading.settings ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
	retry_settings_init(&ret->retry);
	for (size_t i = 0; !code && i < setting_count; i++) {
		const char *rest = rest_of(settings[i].name, ret->name, strlen(ret->name));
		if (rest)
			code = read_one(&reading, &settings[i], rest, err);
	}
	if (!code && reading.kind < 0)
		code = err_set(err, IBID_INVALID,
		               "destination %s: of which kind is it? give kafka, webhook or file",
		               ret->name);
	if (code)
		return code;
	return kinds[reading.kind].open(
	    &(struct broker_options){ret->name, reading.settings, reading.count, env, log},
	    &ret->broker, err);
}

/* The names, each once, in the order in which they come. */
static enum ibid_code list_names(struct arena *arena, const struct destination_setting *settings,
                                 size_t setting_count, struct destination *ret, size_t *ret_count,
                                 struct ibid_err *err)
{
	for (size_t i = 0; i < setting_count; i++) {
		size_t size = strcspn(settings[i].name, "."), at = 0;
		if (!is_name(settings[i].name, size) || !settings[i].name[size])
			return err_set(
			    err, IBID_INVALID,
			    "%s: relay.destinations.%s: write relay.destinations.NAME.KIND.SETTING; a "
			    "name is of a-z, 0-9 and -, at most %d",
			    settings[i].where, settings[i].name, NAME_MAX_BYTES);
		while (at < *ret_count && !rest_of(settings[i].name, ret[at].name, strlen(ret[at].name)))
			at++;
		if (at < *ret_count)
			continue;
		ret[at].name = arena_strndup(arena, settings[i].name, size);
		if (!ret[at].name)
			return err_set(err, IBID_NOMEM, "out of memory");
		++*ret_count;
	}
	return IBID_OK;
}

enum ibid_code destinations_open(struct arena *arena, const struct destination_setting *settings,
                                 size_t setting_count, struct env *env, struct log log,
                                 struct destination **ret, size_t *ret_count, struct ibid_err *err)
{
	size_t count = 0;
	struct destination *opened = arena_array(arena, setting_count + 1, sizeof *opened);
	if (!opened)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = list_names(arena, settings, setting_count, opened, &count, err);
	for (size_t i = 0; !code && i < count; i++)
		code = open_one(arena, settings, setting_count, env, log, &opened[i], err);
	if (code) {
		destinations_close(opened, count);
		return code;
	}
	*ret = opened;
	*ret_count = count;
	return IBID_OK;
}

void destinations_close(struct destination *destinations, size_t count)
{
	for (size_t i = 0; i < count; i++)
		broker_close(destinations[i].broker);
}
