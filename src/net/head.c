/* SPDX-License-Identifier: Apache-2.0 */
#include "net/head.h"

#include "net/header.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* ---- Finding its end ------------------------------------------------------------------------ */

size_t head_size(const char *text, size_t size, size_t *scanned)
{
	assert(*scanned <= size);
	for (size_t at = *scanned; at < size; at++) {
		const char *feed = memchr(text + at, '\n', size - at);
		if (!feed)
			break;
		at = (size_t)(feed - text);
		size_t next = at + 1;
		if (next < size && text[next] == '\r')
			next++;
		if (next == size) { /* undecided: start with this line feed next time */
			*scanned = at;
			return 0;
		}
		if (text[next] == '\n')
			return next + 1;
	}
	*scanned = size;
	return 0;
}

bool head_may_begin(const char *text, size_t size)
{
	size_t at = 0;
	while (at < size && at <= HEAD_METHOD_MAX && header_name_byte_ok(text[at]))
		at++;
	if (at > HEAD_METHOD_MAX)
		return false;
	if (at == size)
		return true;
	const char *feed = memchr(text, '\n', size);
	size_t line = feed ? (size_t)(feed - text) : size;
	if (text[at] != ' ' || at == 0 || (feed && (line == 0 || text[line - 1] != '\r')))
		return false;
	if (!feed)
		return true;
	/* Two blanks, and a version behind the second. */
	const char *second = memchr(text + at + 1, ' ', line - at - 1);
	return second && line - (size_t)(second - text) == sizeof " HTTP/1.1\r" - 1;
}

/* ---- Reading -------------------------------------------------------------------------------- */

struct reader {
	struct head *head;
	struct arena *arena;
	char *at, *end;
};

static void refuse(struct reader *reader, const char *why)
{
	if (!reader->head->wrong)
		reader->head->wrong = why ? why : "out of memory";
}

/* The next line, without its end; NULL where it is none. */
static char *next_line(struct reader *reader)
{
	char *line = reader->at;
	char *feed = memchr(line, '\n', (size_t)(reader->end - line));
	assert(feed);
	reader->at = feed + 1;
	if (feed == line || feed[-1] != '\r') {
		refuse(reader, "a line of the head ends with a line feed alone: it must end with a "
		               "carriage return and a line feed");
		return NULL;
	}
	feed[-1] = 0;
	if (strlen(line) != (size_t)(feed - 1 - line) || !header_value_ok(line)) {
		refuse(reader, "the head holds a NUL or another control character");
		return NULL;
	}
	return line;
}

/* "GET /path HTTP/1.1" */
static void read_request_line(struct reader *reader)
{
	struct head *head = reader->head;
	char *line = next_line(reader);
	if (!line)
		return;
	char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
	if (!version || version == target + 1 || strchr(version + 1, ' ')) {
		refuse(reader, "the first line must be a method, a path and HTTP/1.1, with one blank "
		               "between them");
		return;
	}
	*target++ = *version++ = 0;
	if (!header_name_ok(line) || strlen(line) > HEAD_METHOD_MAX) {
		refuse(reader, "the method is too long, or holds a byte that HTTP allows in no method");
		return;
	}
	head->method = line;
	head->target = target;
	if (strncmp(version, "HTTP/1.", 7) != 0 || version[7] < '0' || version[7] > '9' || version[8]) {
		refuse(reader, "the version must be HTTP/1.1 or HTTP/1.0");
		return;
	}
	head->minor = version[7] - '0';
	for (const char *at = target; *at; at++)
		if (*at < '!' || *at > '~')
			refuse(reader, "the path or the query holds a control character or a byte beyond "
			               "ASCII: it must be written as %XX");
}

static char *trim(char *value)
{
	value += strspn(value, " \t");
	size_t size = strlen(value);
	while (size && strchr(" \t", value[size - 1]))
		size--;
	value[size] = 0;
	return value;
}

static void read_field(struct reader *reader, char *line)
{
	struct head *head = reader->head;
	char *colon = strchr(line, ':');
	if (*line == ' ' || *line == '\t') {
		refuse(reader, "a line of the head begins with a blank: folded lines are not taken");
		return;
	}
	if (!colon) {
		refuse(reader, arena_printf(reader->arena, "header %zu has no colon", head->count + 1));
		return;
	}
	*colon = 0;
	/* Some parsers accept "Content-Length :" or "Content-Length;" as Content-Length. */
	if (!header_name_ok(line)) {
		refuse(reader,
		       arena_printf(reader->arena,
		                    "the name of header %zu holds a byte that HTTP allows in no name: "
		                    "letters, digits and !#$%%&'*+-.^_`|~ may stand there",
		                    head->count + 1));
		return;
	}
	if (head->count == HEAD_FIELDS_MAX) {
		refuse(reader,
		       arena_printf(reader->arena, "the head has more than %d headers", HEAD_FIELDS_MAX));
		return;
	}
	head->fields[head->count++] = (struct head_field){.name = line, .value = trim(colon + 1)};
}

/* ---- Fields about the connection and the body --------------------------------------------------
 */

const char *head_find(const struct head *head, const char *name, bool *ret_many)
{
	const char *value = NULL;
	*ret_many = false;
	for (size_t i = 0; i < head->count; i++) {
		if (strcasecmp(head->fields[i].name, name) != 0)
			continue;
		*ret_many |= value != NULL;
		value = head->fields[i].value;
	}
	return *ret_many ? NULL : value;
}

/* Does a field of this name list the word? */
static bool lists(const struct head *head, const char *name, const char *word)
{
	size_t size = strlen(word);
	for (size_t i = 0; i < head->count; i++) {
		if (strcasecmp(head->fields[i].name, name) != 0)
			continue;
		const char *at = head->fields[i].value;
		assert(at);
		while (*at) {
			at += strspn(at, " \t,");
			size_t item = strcspn(at, " \t,");
			if (item == size && strncasecmp(at, word, size) == 0)
				return true;
			at += item;
		}
	}
	return false;
}

static bool read_length(const char *text, int64_t *ret)
{
	int64_t value = 0;
	if (!*text || text[strspn(text, "0123456789")])
		return false;
	for (; *text; text++) {
		int digit = *text - '0';
		if (value > (INT64_MAX - digit) / 10) {
			value = INT64_MAX;
			break;
		}
		value = value * 10 + digit;
	}
	*ret = value;
	return true;
}

/* The body has one length, given in one way. */
static void read_framing(struct reader *reader)
{
	struct head *head = reader->head;
	bool lengths, encodings, hosts, expects;
	const char *length = head_find(head, "Content-Length", &lengths);
	const char *encoding = head_find(head, "Transfer-Encoding", &encodings);
	const char *host = head_find(head, "Host", &hosts);
	const char *expect = head_find(head, "Expect", &expects);
	if (lengths || encodings || (length && encoding) ||
	    (encoding && (!head->minor || strcasecmp(encoding, "chunked") != 0)))
		refuse(reader, "the length of the body must be given once, by Content-Length or, with "
		               "HTTP/1.1, as Transfer-Encoding: chunked");
	if (length && !read_length(length, &head->length))
		refuse(reader, "Content-Length must be a number of bytes");
	if (hosts)
		refuse(reader, "Host must be given once");
	if (!host && head->minor)
		refuse(reader, "Host is missing: HTTP/1.1 needs it");
	if (expects || (expect && strcasecmp(expect, "100-continue") != 0))
		refuse(reader, "Expect may only be 100-continue");
	head->chunked = encoding;
	head->wants_continue = expect && head->minor;
	head->keep_alive = !head->wrong && !lists(head, "Connection", "close") &&
	                   (head->minor || lists(head, "Connection", "keep-alive"));
}

void head_read(struct head *ret, struct arena *arena, char *text, size_t size)
{
	struct reader reader = {.head = ret, .arena = arena, .at = text, .end = text + size};
	*ret = (struct head){0};
	assert(size && text[size - 1] == '\n');
	read_request_line(&reader);
	while (!ret->wrong) {
		char *line = next_line(&reader);
		if (!line || !*line)
			break;
		read_field(&reader, line);
	}
	if (!ret->wrong)
		read_framing(&reader);
	assert(ret->wrong || reader.at == reader.end);
}
