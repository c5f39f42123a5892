/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_head.c -- K05 under arbitrary bytes: a head that is taken is the same when it is written in
 * its plainest form and read again, and chunks are the same however they arrive. */
#include "base/str.h"
#include "net/chunks.h"
#include "net/head.h"
#include "net/header.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void write_head(struct str *out, const struct head *head)
{
	str_addf(out, "%s %s HTTP/1.%d\r\n", head->method, head->target, head->minor);
	for (size_t i = 0; i < head->count; i++)
		str_addf(out, "%s:%s\r\n", head->fields[i].name, head->fields[i].value);
	str_adds(out, "\r\n");
}

static void check_same(const struct head *a, const struct head *b)
{
	must(!b->wrong && strcmp(a->method, b->method) == 0 && strcmp(a->target, b->target) == 0);
	must(a->minor == b->minor && a->count == b->count && a->chunked == b->chunked &&
	     a->length == b->length && a->keep_alive == b->keep_alive &&
	     a->wants_continue == b->wants_continue);
	for (size_t i = 0; i < a->count; i++)
		must(strcmp(a->fields[i].name, b->fields[i].name) == 0 &&
		     strcmp(a->fields[i].value, b->fields[i].value) == 0);
}

static void check_head(const char *text, size_t size)
{
	struct arena arena = {0};
	struct head head, again;
	struct str out = STR_INIT(1 << 20);
	size_t scanned = 0, whole = head_size(text, size, &scanned);
	if (whole) {
		head_read(&head, &arena, arena_strndup(&arena, text, whole), whole);
		must(head.wrong || head_may_begin(text, whole));
		must(!head.wrong || !head.keep_alive);
	}
	if (whole && !head.wrong) {
		bool many;
		must(!head.chunked || !head_find(&head, "Content-Length", &many));
		must(head.minor == 0 || head_find(&head, "Host", &many));
		write_head(&out, &head);
		scanned = 0;
		must(head_size(out.data, out.size, &scanned) == out.size);
		head_read(&again, &arena, out.data, out.size);
		check_same(&head, &again);
	}
	str_release(&out);
	arena_release(&arena);
}

/* What the chunks hold, and how much of the text they take; false: refused, or not whole. */
static bool read_chunks(const char *text, size_t size, size_t piece, struct str *out, size_t *ret)
{
	struct chunks chunks = {0};
	size_t at = 0, end = 0;
	for (;;) {
		size_t used;
		enum chunks_found found = chunks_read(&chunks, text + at, end - at, &used);
		must(used <= end - at);
		at += used;
		*ret = at;
		if (found == CHUNKS_END || found == CHUNKS_WRONG)
			return found == CHUNKS_END;
		if (found == CHUNKS_DATA && at < end) {
			size_t most = end - at < chunks.left ? end - at : (size_t)chunks.left;
			must(most > 0);
			str_add(out, text + at, most);
			at += most;
			chunks.left -= most;
			continue;
		}
		if (end == size)
			return false;
		end = size - end < piece ? size : end + piece;
	}
}

static void check_chunks(const char *text, size_t size)
{
	struct str whole = STR_INIT(1 << 20), pieces = STR_INIT(1 << 20);
	size_t whole_used, pieces_used;
	bool good = read_chunks(text, size, size + 1, &whole, &whole_used);
	must(read_chunks(text, size, 1, &pieces, &pieces_used) == good);
	must(!good || (whole_used == pieces_used && whole.size == pieces.size &&
	               (!whole.size || memcmp(whole.data, pieces.data, whole.size) == 0)));
	str_release(&whole);
	str_release(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	check_head((const char *)bytes, size);
	check_chunks((const char *)bytes, size);
	return 0;
}
