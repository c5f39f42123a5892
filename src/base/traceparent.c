/* SPDX-License-Identifier: Apache-2.0 */
#include "base/traceparent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The positions of the parts; a dash follows each but the last. */
enum { AT_TRACE_ID = 3, AT_PARENT_ID = 36, AT_FLAGS = 53 };

enum {
	FLAG_SAMPLED = 0x01,
	FLAG_RANDOM = 0x02, /* of the trace id: passed on with it */
};

static const char digits[] = "0123456789abcdef";

static bool is_hex(const char *text, size_t size)
{
	return strspn(text, digits) >= size;
}

static bool is_zero(const char *text, size_t size)
{
	return strspn(text, "0") >= size;
}

/* Each part is looked at only where the one before it was whole: never behind the text's end. */
bool traceparent_read(const char *text, struct traceparent *ret)
{
	if (!is_hex(text, 2) || text[2] != '-' || !is_hex(text + AT_TRACE_ID, 32) ||
	    text[AT_PARENT_ID - 1] != '-' || !is_hex(text + AT_PARENT_ID, 16) ||
	    text[AT_FLAGS - 1] != '-' || !is_hex(text + AT_FLAGS, 2))
		return false;
	if (is_zero(text + AT_TRACE_ID, 32) || is_zero(text + AT_PARENT_ID, 16))
		return false;
	bool known = memcmp(text, "00", 2) == 0;
	const char *rest = text + TRACEPARENT_SIZE - 1;
	if (memcmp(text, "ff", 2) == 0 || (*rest && (known || *rest != '-')))
		return false;
	*ret = (struct traceparent){.flags = (unsigned)strtoul(text + AT_FLAGS, NULL, 16) &
	                                     (known ? FLAG_SAMPLED | FLAG_RANDOM : FLAG_SAMPLED)};
	memcpy(ret->trace_id, text + AT_TRACE_ID, sizeof ret->trace_id - 1);
	memcpy(ret->parent_id, text + AT_PARENT_ID, sizeof ret->parent_id - 1);
	return true;
}

void traceparent_write(const struct traceparent *traceparent, char ret[TRACEPARENT_SIZE])
{
	snprintf(ret, TRACEPARENT_SIZE, "00-%s-%s-%02x", traceparent->trace_id, traceparent->parent_id,
	         traceparent->flags & 0xFF);
}

void traceparent_descend(struct traceparent *traceparent, struct env *env)
{
	unsigned char id[(SPAN_ID_SIZE - 1) / 2];
	do {
		env_random(env, id, sizeof id);
		for (size_t i = 0; i < sizeof id; i++) {
			traceparent->parent_id[2 * i] = digits[id[i] >> 4];
			traceparent->parent_id[2 * i + 1] = digits[id[i] & 15];
		}
	} while (is_zero(traceparent->parent_id, SPAN_ID_SIZE - 1));
}

bool tracestate_fits(const char *text)
{
	size_t size = 0;
	while (text[size] >= ' ' && text[size] <= '~' && size <= TRACESTATE_BYTES_MAX)
		size++;
	return !text[size] && size <= TRACESTATE_BYTES_MAX;
}
