/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <assert.h>
#include <string.h>

static const char *const names[FAILURE_CLASS_COUNT] = {
#define FAILURE_CLASS_NAME(symbol, name, meaning) [FAILURE_##symbol] = name,
    FAILURE_CLASSES(FAILURE_CLASS_NAME)
#undef FAILURE_CLASS_NAME
};

const char *failure_class_name(enum failure_class class)
{
	assert(class < FAILURE_CLASS_COUNT);
	return names[class];
}

bool failure_class_read(const char *name, enum failure_class *ret)
{
	for (unsigned i = 0; i < FAILURE_CLASS_COUNT; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum failure_class)i;
			return true;
		}
	}
	return false;
}
