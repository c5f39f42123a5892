/* SPDX-License-Identifier: Apache-2.0 */
#include "base/obj.h"

#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

static void add_string(struct str *out, const char *text)
{
	struct str valid = STR_INIT(out->cap);
	size_t size = strlen(text);
	for (size_t i = 0; i < size;) {
		size_t step = utf8_size(text + i, size - i);
		if (step)
			str_add(&valid, text + i, step);
		else
			str_adds(&valid, "\xef\xbf\xbd");
		i += step ? step : 1;
	}
	out->failed = out->failed || valid.failed;
	str_add_json(out, str_text(&valid), valid.size);
	str_release(&valid);
}

static void add_name(struct str *out, const char *name)
{
	if (out->size && !strchr("{[\n", out->data[out->size - 1]))
		str_addc(out, ',');
	if (!name)
		return;
	add_string(out, name);
	str_addc(out, ':');
}

void obj_begin(struct str *out, const char *name, char bracket)
{
	add_name(out, name);
	str_addc(out, bracket);
}

void obj_end(struct str *out, char bracket)
{
	str_addc(out, bracket);
}

void obj_text(struct str *out, const char *name, const char *text)
{
	add_name(out, name);
	if (text)
		add_string(out, text);
	else
		str_adds(out, "null");
}

void obj_text_if(struct str *out, const char *name, const char *text)
{
	if (text)
		obj_text(out, name, text);
}

void obj_id(struct str *out, const char *name, struct uuid id)
{
	char text[UUID_TEXT_SIZE];
	uuid_write(id, text);
	obj_text(out, name, text);
}

void obj_int(struct str *out, const char *name, int64_t number)
{
	add_name(out, name);
	str_addf(out, "%lld", (long long)number);
}

void obj_bool(struct str *out, const char *name, bool value)
{
	add_name(out, name);
	str_adds(out, value ? "true" : "false");
}

void obj_raw(struct str *out, const char *name, const char *json)
{
	add_name(out, name);
	if (!json || !*json)
		json = "null";
	while (*json) {
		size_t size = strcspn(json, "\r\n"); /* they only stand between tokens */
		str_add(out, json, size);
		json += size;
		if (*json) {
			str_addc(out, ' ');
			json++;
		}
	}
}

const char *obj_camel(const char *name, char ret[OBJ_NAME_SIZE])
{
	size_t size = 0;
	for (const char *from = name; *from && size < OBJ_NAME_SIZE - 1; from++) {
		bool upper = *from == '_' && from[1];
		from += upper;
		ret[size++] = (char)(upper ? toupper((unsigned char)*from) : *from);
	}
	ret[size] = '\0';
	return ret;
}

void names_json(struct str *out, const char *name, const char *names)
{
	struct str one = STR_INIT(out->cap);
	obj_begin(out, name, '[');
	while (names && *names) {
		size_t size = strcspn(names, ",");
		str_clear(&one);
		str_add(&one, names, size);
		obj_text(out, NULL, str_text(&one));
		names += size + (names[size] == ',');
	}
	obj_end(out, ']');
	out->failed = out->failed || one.failed;
	str_release(&one);
}
