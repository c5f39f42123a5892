/* SPDX-License-Identifier: Apache-2.0 */
/* setting.h -- a destination's settings: a table of all settings, and their reader. */
#ifndef BROKER_SETTING_H
#define BROKER_SETTING_H

#include "base/arena.h"
#include "broker/broker.h"

enum setting_type {
	SETTING_TEXT,     /* const char * */
	SETTING_SECRET,   /* const char *; never part of a message */
	SETTING_DURATION, /* int64_t, microseconds */
	SETTING_NUMBER,   /* int64_t */
	SETTING_CHOICE,   /* bool: yes or no */
	SETTING_EACH, /* struct setting_each: `name.X`, any number of them; never part of a message */
};

enum { SETTING_EACH_MAX = 32 };

struct setting_each {
	struct broker_setting items[SETTING_EACH_MAX]; /* the names without `name.` */
	size_t count;
};

struct setting {
	const char *name;
	enum setting_type type;
	size_t at; /* offset in what is filled */
	int64_t min, max;
	const char *right; /* what would be right: "a duration such as 10s, from 100ms to 10m" */
};

/* Fill `ret`, which holds the defaults. Texts are copied into `arena`. IBID_INVALID: an unknown
 * setting, one that is given twice, or a wrong value. The table ends with a NULL name. */
IBID_CHECK enum ibid_code settings_fill(const struct broker_options *options,
                                        const struct setting *table, struct arena *arena, void *ret,
                                        struct ibid_err *err);

#endif
