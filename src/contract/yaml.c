/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c -- libyaml's events become a tree; ambiguous notations are refused. */
#include "contract/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	struct arena *arena;
	const char *file;
	const char *bytes;
	size_t size;
	struct yaml_error *error;
};

__attribute__((format(printf, 4, 5))) static enum ibid_code
fail(struct reader *reader, enum ibid_code code, int line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	reader->error->line = line;
	vsnprintf(reader->error->text, sizeof reader->error->text, format, args);
	va_end(args);
	return code;
}

static int line_of(const yaml_event_t *event)
{
	return (int)event->start_mark.line + 1;
}

/* Errors of libyaml's lowest layer (encoding) know a byte offset, no line. */
static int line_of_offset(const struct reader *reader, size_t offset)
{
	int line = 1;
	for (size_t i = 0; i < offset && i < reader->size; i++)
		line += reader->bytes[i] == '\n';
	return line;
}

static enum ibid_code parser_failed(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	const char *problem = parser->problem ? parser->problem : "it can't be read";
	if (parser->error == YAML_MEMORY_ERROR)
		return IBID_NOMEM;
	if (parser->error == YAML_READER_ERROR)
		return fail(reader, IBID_INVALID, line_of_offset(reader, parser->problem_offset),
		            "this is not YAML: %s", problem);
	return fail(reader, IBID_INVALID, (int)parser->problem_mark.line + 1,
	            "this is not YAML: %s%s%s", problem, parser->context ? ", " : "",
	            parser->context ? parser->context : "");
}

static enum ibid_code next_event(struct reader *reader, yaml_event_t *ret)
{
	return yaml_parser_parse(&reader->parser, ret) ? IBID_OK : parser_failed(reader);
}

/* Characters that an editor shows as nothing, or that a YAML reader takes for a line break. */
static bool char_is_hidden(const unsigned char *at, size_t left)
{
	if (at[0] < 0x20)
		return at[0] != '\t' && at[0] != '\n';
	if (at[0] == 0x7f)
		return true;
	if (at[0] == 0xc2 && left > 1)
		return at[1] < 0xa0; /* U+0080..U+009F */
	if (at[0] == 0xe2 && left > 2)
		return at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9); /* U+2028, U+2029 */
	if (at[0] == 0xef && left > 2)
		return (at[1] == 0xbb && at[2] == 0xbf) || (at[1] == 0xbf && at[2] >= 0xbe);
	return false;
}

static bool text_is_plain(const unsigned char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (char_is_hidden(text + i, size - i))
			return false;
	return true;
}

static enum ibid_code check_marks(struct reader *reader, int line, const yaml_char_t *anchor,
                                  const yaml_char_t *tag)
{
	if (anchor)
		return fail(reader, IBID_INVALID, line,
		            "the anchor `&%s` is not read here: write the answer out, or put it into "
		            "defaults.yaml",
		            (const char *)anchor);
	if (tag)
		return fail(reader, IBID_INVALID, line,
		            "the tag `%s` is not read here: every value is text", (const char *)tag);
	return IBID_OK;
}

/* Refuse notations without a single meaning, in any place. */
static enum ibid_code check_event(struct reader *reader, const yaml_event_t *event, int depth)
{
	int line = line_of(event);
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return fail(reader, IBID_INVALID, line,
		            "the alias `*%s` is not read here: write the answer out, or put it into "
		            "defaults.yaml",
		            (const char *)event->data.alias.anchor);
	case YAML_SCALAR_EVENT:
		if (!text_is_plain(event->data.scalar.value, event->data.scalar.length))
			return fail(reader, IBID_INVALID, line, "a value holds an invisible control character");
		return check_marks(reader, line, event->data.scalar.anchor, event->data.scalar.tag);
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		if (depth >= YAML_DEPTH_MAX)
			return fail(reader, IBID_LIMIT, line, "it is nested deeper than %d levels",
			            YAML_DEPTH_MAX);
		if (event->type == YAML_SEQUENCE_START_EVENT)
			return check_marks(reader, line, event->data.sequence_start.anchor,
			                   event->data.sequence_start.tag);
		return check_marks(reader, line, event->data.mapping_start.anchor,
		                   event->data.mapping_start.tag);
	default: return IBID_OK;
	}
}

static struct node *node_new(struct reader *reader, enum node_type type, int line)
{
	struct node *node = arena_alloc(reader->arena, sizeof *node);
	if (node)
		*node = (struct node){.type = type, .line = line, .file = reader->file, .text = ""};
	return node;
}

static enum ibid_code read_node(struct reader *reader, yaml_event_t *event, int depth,
                                struct node **ret);

static enum ibid_code read_list(struct reader *reader, struct node *list, int depth)
{
	struct node **end = &list->child;
	for (;;) {
		yaml_event_t event;
		enum ibid_code code = next_event(reader, &event);
		if (code)
			return code;
		if (event.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&event);
			return IBID_OK;
		}
		code = read_node(reader, &event, depth + 1, end);
		if (code)
			return code;
		list->count++;
		end = &(*end)->next;
	}
}

static enum ibid_code check_name(struct reader *reader, const struct node *map,
                                 const yaml_event_t *event)
{
	int line = line_of(event);
	if (event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT)
		return fail(reader, IBID_INVALID, line, "a member's name must be plain text");
	enum ibid_code code = check_event(reader, event, 0);
	if (code)
		return code;
	if (event->data.scalar.length > YAML_NAME_BYTES_MAX)
		return fail(reader, IBID_LIMIT, line, "a member's name is longer than %d bytes",
		            YAML_NAME_BYTES_MAX);
	const char *name = (const char *)event->data.scalar.value;
	if (strcmp(name, "<<") == 0)
		return fail(reader, IBID_INVALID, line,
		            "the merge key `<<` is not read here: write the answers out, or put them into "
		            "defaults.yaml");
	const struct node *twin = node_member(map, name);
	if (twin)
		return fail(reader, IBID_INVALID, line, "`%s` is given twice, first in line %d", name,
		            twin->line);
	if (map->count >= YAML_MEMBERS_MAX)
		return fail(reader, IBID_LIMIT, line, "a mapping has more than %d members",
		            YAML_MEMBERS_MAX);
	return IBID_OK;
}

/* `event` is the name's; read the value and give it that name. */
static enum ibid_code read_member(struct reader *reader, const yaml_event_t *event, int depth,
                                  struct node **ret)
{
	yaml_event_t value;
	int line = line_of(event);
	const char *name = arena_strndup(reader->arena, (const char *)event->data.scalar.value,
	                                 event->data.scalar.length);
	if (!name)
		return IBID_NOMEM;
	enum ibid_code code = next_event(reader, &value);
	if (code)
		return code;
	code = read_node(reader, &value, depth + 1, ret);
	if (code)
		return code;
	(*ret)->name = name;
	(*ret)->line = line;
	return IBID_OK;
}

static enum ibid_code read_map(struct reader *reader, struct node *map, int depth)
{
	struct node **end = &map->child;
	for (;;) {
		yaml_event_t event;
		enum ibid_code code = next_event(reader, &event);
		if (code)
			return code;
		bool done = event.type == YAML_MAPPING_END_EVENT;
		if (!done) {
			code = check_name(reader, map, &event);
			if (!code)
				code = read_member(reader, &event, depth, end);
		}
		yaml_event_delete(&event);
		if (done || code)
			return code;
		map->count++;
		end = &(*end)->next;
	}
}

/* Takes the event, even when it fails. */
static enum ibid_code read_node(struct reader *reader, yaml_event_t *event, int depth,
                                struct node **ret)
{
	int line = line_of(event);
	yaml_event_type_t type = event->type;
	struct node *node = NULL;
	enum ibid_code code = check_event(reader, event, depth);
	if (code)
		goto out;
	node = node_new(reader,
	                type == YAML_SCALAR_EVENT           ? NODE_TEXT
	                : type == YAML_SEQUENCE_START_EVENT ? NODE_LIST
	                                                    : NODE_MAP,
	                line);
	if (node && type == YAML_SCALAR_EVENT)
		node->text = arena_strndup(reader->arena, (const char *)event->data.scalar.value,
		                           event->data.scalar.length);
	if (!node || !node->text)
		code = IBID_NOMEM;
out:
	yaml_event_delete(event);
	if (!code && type == YAML_SEQUENCE_START_EVENT)
		code = read_list(reader, node, depth);
	else if (!code && type == YAML_MAPPING_START_EVENT)
		code = read_map(reader, node, depth);
	if (!code)
		*ret = node;
	return code;
}

/* The next event that is not the stream's or a document's beginning or end. */
static enum ibid_code next_content(struct reader *reader, yaml_event_t *ret, bool *ret_end)
{
	for (;;) {
		enum ibid_code code = next_event(reader, ret);
		if (code)
			return code;
		switch (ret->type) {
		case YAML_STREAM_END_EVENT:
			*ret_end = true;
			yaml_event_delete(ret);
			return IBID_OK;
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_START_EVENT:
		case YAML_DOCUMENT_END_EVENT: yaml_event_delete(ret); break;
		default: *ret_end = false; return IBID_OK;
		}
	}
}

static enum ibid_code read_document(struct reader *reader, struct node **ret)
{
	yaml_event_t event;
	bool end = false;
	struct node *root = NULL;
	enum ibid_code code = next_content(reader, &event, &end);
	if (code)
		return code;
	if (end)
		return fail(reader, IBID_INVALID, 0, "it is empty");
	code = read_node(reader, &event, 0, &root);
	if (code)
		return code;
	code = next_content(reader, &event, &end);
	if (code)
		return code;
	if (!end) {
		int line = line_of(&event);
		yaml_event_delete(&event);
		return fail(reader, IBID_INVALID, line,
		            "a second document begins here: one file holds one contract");
	}
	*ret = root;
	return IBID_OK;
}

enum ibid_code yaml_read(struct arena *arena, const char *file, const char *bytes, size_t size,
                         size_t bytes_max, struct node **ret, struct yaml_error *ret_error)
{
	struct reader reader = {
	    .arena = arena, .file = file, .bytes = bytes, .size = size, .error = ret_error};
	if (bytes_max == 0)
		bytes_max = YAML_BYTES_MAX;
	if (size > bytes_max)
		return fail(&reader, IBID_LIMIT, 0, "it is larger than %zu bytes", bytes_max);
	if (!yaml_parser_initialize(&reader.parser))
		return IBID_NOMEM;
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)bytes, size);
	enum ibid_code code = read_document(&reader, ret);
	yaml_parser_delete(&reader.parser);
	return code;
}

struct node *node_member(const struct node *map, const char *name)
{
	if (!map || map->type != NODE_MAP)
		return NULL;
	for (struct node *child = map->child; child; child = child->next)
		if (strcmp(child->name, name) == 0)
			return child;
	return NULL;
}
