/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/cloudevent.h"

#include "base/json.h"
#include "base/obj.h"
#include "base/utf8.h"
#include "broker/ends.h"

#include <string.h>

/* What an extension can't be called. */
static const char *const taken[] = {"specversion",     "id",         "source", "type",
                                    "subject",         "time",       "data",   "data_base64",
                                    "datacontenttype", "dataschema", NULL};

size_t cloudevent_attributes(const struct record *record,
                             struct broker_header ret[CLOUDEVENT_ATTRIBUTES])
{
	const struct broker_header all[CLOUDEVENT_ATTRIBUTES] = {
	    {"specversion", "1.0"}, {"id", record->id},           {"source", record->source},
	    {"type", record->type}, {"subject", record->subject}, {"time", record->time},
	};
	size_t count = 0;
	for (size_t i = 0; i < CLOUDEVENT_ATTRIBUTES; i++)
		if (all[i].value && *all[i].value)
			ret[count++] = all[i];
	return count;
}

static bool is_extension(const char *name)
{
	for (size_t i = 0; taken[i]; i++)
		if (strcmp(taken[i], name) == 0)
			return false;
	return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789")];
}

/* It stands in headers and is signed: printable ASCII without blanks. */
static bool is_id(const char *id)
{
	size_t size = id ? strlen(id) : 0;
	for (size_t i = 0; i < size; i++)
		if (id[i] <= ' ' || id[i] > '~')
			return false;
	return size > 0 && size <= CLOUDEVENT_ID_BYTES_MAX;
}

static bool is_text(const char *text)
{
	return !text || utf8_ok(text, strlen(text));
}

static const char *find_fault(const struct record *record)
{
	if (!is_id(record->id))
		return "its id is empty, too long, or not printable ASCII without blanks";
	if (!record->source || !*record->source || !record->type || !*record->type)
		return "it has no source or no type";
	if (!is_text(record->source) || !is_text(record->type) || !is_text(record->subject) ||
	    !is_text(record->time))
		return "its source, type, subject or time is not UTF-8";
	for (size_t i = 0; i < record->header_count; i++) {
		const struct broker_header *header = &record->headers[i];
		if (!is_extension(header->name))
			return "an extension attribute's name is not lower-case letters and digits, or is "
			       "taken";
		if (!is_text(header->value))
			return "an extension attribute is not UTF-8";
		for (size_t k = 0; k < i; k++)
			if (strcmp(record->headers[k].name, header->name) == 0)
				return "an extension attribute is there twice";
	}
	return NULL;
}

bool cloudevent_check(struct record *record)
{
	const char *fault = find_fault(record);
	if (fault)
		record_fail(record, FAILURE_POISON, "RECORD_MALFORMED", "%s", fault);
	return !fault;
}

static bool check_payload(struct record *record)
{
	struct arena arena = {0};
	struct json *root;
	struct ibid_err err = {0};
	enum ibid_code code = json_read(&arena, record->payload ? record->payload : "",
	                                record->payload_size, 0, &root, &err);
	arena_release(&arena);
	if (code == IBID_NOMEM)
		record_fail(record, FAILURE_TRANSIENT, "OUT_OF_MEMORY", "out of memory");
	else if (code)
		record_fail(record, FAILURE_POISON,
		            code == IBID_LIMIT ? "RECORD_TOO_LARGE" : "RECORD_MALFORMED",
		            "its payload can't be written as JSON: %.180s", err.text);
	return !code;
}

/* Line ends may occur between tokens, not in strings. */
static void add_on_one_line(struct str *out, const char *json, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t run = at;
		while (run < size && json[run] != '\n' && json[run] != '\r')
			run++;
		str_add(out, json + at, run - at);
		if (run < size)
			str_addc(out, ' ');
		at = run + 1;
	}
}

bool cloudevent_line(struct record *record, struct str *out)
{
	struct broker_header attributes[CLOUDEVENT_ATTRIBUTES];
	size_t count = cloudevent_attributes(record, attributes), before = out->size;
	if (!check_payload(record))
		return false;
	obj_begin(out, NULL, '{');
	for (size_t i = 0; i < count; i++)
		obj_text(out, attributes[i].name, attributes[i].value);
	for (size_t i = 0; i < record->header_count; i++)
		if (record->headers[i].value && *record->headers[i].value)
			obj_text(out, record->headers[i].name, record->headers[i].value);
	obj_text(out, "datacontenttype", "application/json");
	str_adds(out, ",\"data\":");
	add_on_one_line(out, record->payload, record->payload_size);
	str_adds(out, "}\n");
	if (!out->failed)
		return true;
	out->failed = false;
	out->size = before;
	return false;
}
