/* SPDX-License-Identifier: Apache-2.0 */
/* log.c -- build one line and pass it to the log's function.
 *
 * A line is always valid JSON, whatever the texts contain, so that a log reader can't fail on it.
 * Long texts are cut; a line that can't be built is replaced by a line that says so. */
#include "base/log.h"

#include "base/instant.h"
#include "base/str.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

enum { LINE_BYTES_MAX = 64 << 10, TEXT_BYTES_MAX = 4096 };

static const char *const level_names[] = {
    [IBID_LOG_DEBUG] = "debug",
    [IBID_LOG_INFO] = "info",
    [IBID_LOG_WARN] = "warn",
    [IBID_LOG_ERROR] = "error",
};

/* The same text with U+FFFD for each byte that is not UTF-8, cut after TEXT_BYTES_MAX. */
static void add_clean(struct str *out, const char *text)
{
	struct str clean = STR_INIT(TEXT_BYTES_MAX + 16);
	size_t left = strlen(text);
	if (left <= TEXT_BYTES_MAX && utf8_ok(text, left)) { /* as nearly all are */
		str_add_json(out, text, left);
		return;
	}
	while (left && clean.size < TEXT_BYTES_MAX) {
		size_t size = utf8_size(text, left);
		if (size)
			str_add(&clean, text, size);
		else
			str_adds(&clean, "\xEF\xBF\xBD");
		text += size ? size : 1;
		left -= size ? size : 1;
	}
	if (left)
		str_adds(&clean, "...");
	out->failed |= clean.failed;
	str_add_json(out, str_text(&clean), clean.size);
	str_release(&clean);
}

static void add_field(struct str *line, const struct log_field *field)
{
	str_addc(line, ',');
	add_clean(line, field->name);
	str_addc(line, ':');
	if (field->value.kind == LOG_VALUE_INT)
		str_addf(line, "%" PRId64, field->value.number);
	else if (field->value.text)
		add_clean(line, field->value.text);
	else
		str_adds(line, "null");
}

void log_fields(const struct log *log, enum ibid_log_level level, const char *event,
                const struct log_field *fields, size_t count)
{
	char time[INSTANT_TEXT_SIZE];
	struct str line = STR_INIT(LINE_BYTES_MAX);
	if (!log || !log->fn)
		return;
	instant_write(env_wall_us(log->env), time);
	str_addf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":", time, level_names[level]);
	add_clean(&line, event);
	for (size_t i = 0; i < count; i++)
		add_field(&line, &fields[i]);
	str_addc(&line, '}');
	log->fn(log->user, level,
	        line.failed ? "{\"level\":\"error\",\"event\":\"log.lost\"}" : line.data);
	str_release(&line);
}
