/* SPDX-License-Identifier: Apache-2.0 */
#include "net/chunks.h"

#include "net/header.h"

#include <string.h>

enum { DIGITS_MAX = 15 }; /* of a chunk size: 15 hexadecimal digits fit into 64 bits */

/* The part of the framing that the next byte belongs to. */
enum {
	AT_SIZE,
	AT_EXTENSION,
	AT_SIZE_FEED,
	AT_DATA,
	AT_DATA_RETURN,
	AT_DATA_FEED,
	AT_TRAILER,
	AT_TRAILER_NAME,
	AT_TRAILER_VALUE,
	AT_TRAILER_FEED,
	AT_LAST_FEED,
	AT_END,
	AT_NOTHING, /* the body was refused */
};

static int digit_of(char byte)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = byte ? strchr(digits, byte >= 'A' && byte <= 'F' ? byte + 32 : byte) : NULL;
	return found ? (int)(found - digits) : -1;
}

static bool is_text(char byte)
{
	return byte == '\t' || ((unsigned char)byte >= ' ' && byte != 0x7f);
}

static int refuse(struct chunks *chunks, const char *why)
{
	chunks->wrong = why;
	return AT_NOTHING;
}

static int spend(struct chunks *chunks, int state)
{
	if (chunks->extra++ < CHUNKS_EXTRA_MAX)
		return state;
	return refuse(chunks, "the chunks' extensions and trailers are too long together");
}

static int after_size(struct chunks *chunks, char byte)
{
	static const char what[] = "a chunk must begin with its size in hexadecimal digits, and that "
	                           "line must end with a carriage return and a line feed";
	int digit = digit_of(byte);
	if (digit >= 0 && chunks->digits++ < DIGITS_MAX) {
		chunks->left = chunks->left * 16 + (uint64_t)digit;
		return AT_SIZE;
	}
	if (digit >= 0)
		return refuse(chunks, "the size of a chunk is too large");
	if (!chunks->digits)
		return refuse(chunks, what);
	if (byte == '\r')
		return AT_SIZE_FEED;
	if (byte == ';' || byte == ' ' || byte == '\t')
		return spend(chunks, AT_EXTENSION);
	return refuse(chunks, what);
}

static int after_size_feed(struct chunks *chunks)
{
	bool last = !chunks->left;
	chunks->digits = 0;
	return last ? AT_TRAILER : AT_DATA;
}

/* The state behind one byte. */
static int next_state(struct chunks *chunks, char byte)
{
	static const char line[] = "a line of the body's framing does not end with a carriage return "
	                           "and a line feed, or holds a control character";
	bool feed = byte == '\n';
	switch (chunks->state) {
	case AT_SIZE: return after_size(chunks, byte);
	case AT_EXTENSION:
		if (byte == '\r')
			return AT_SIZE_FEED;
		return is_text(byte) ? spend(chunks, AT_EXTENSION) : refuse(chunks, line);
	case AT_SIZE_FEED: return feed ? after_size_feed(chunks) : refuse(chunks, line);
	case AT_DATA_RETURN:
		return byte == '\r' ? AT_DATA_FEED
		                    : refuse(chunks, "a chunk is longer than the size before it");
	case AT_DATA_FEED: return feed ? AT_SIZE : refuse(chunks, line);
	case AT_TRAILER:
		if (byte == '\r')
			return AT_LAST_FEED;
		return header_name_byte_ok(byte) ? spend(chunks, AT_TRAILER_NAME) : refuse(chunks, line);
	case AT_TRAILER_NAME:
		if (byte == ':')
			return spend(chunks, AT_TRAILER_VALUE);
		return header_name_byte_ok(byte)
		           ? spend(chunks, AT_TRAILER_NAME)
		           : refuse(chunks, "a trailer's name holds a byte that HTTP allows in "
		                            "no name");
	case AT_TRAILER_VALUE:
		if (byte == '\r')
			return AT_TRAILER_FEED;
		return is_text(byte) ? spend(chunks, AT_TRAILER_VALUE) : refuse(chunks, line);
	case AT_TRAILER_FEED: return feed ? AT_TRAILER : refuse(chunks, line);
	case AT_LAST_FEED: return feed ? AT_END : refuse(chunks, line);
	default: return chunks->state;
	}
}

enum chunks_found chunks_read(struct chunks *chunks, const char *bytes, size_t size,
                              size_t *ret_used)
{
	size_t at = 0;
	if (chunks->state == AT_DATA && !chunks->left)
		chunks->state = AT_DATA_RETURN;
	while (at < size && chunks->state != AT_DATA && chunks->state < AT_END)
		chunks->state = next_state(chunks, bytes[at++]);
	*ret_used = at;
	switch (chunks->state) {
	case AT_DATA: return CHUNKS_DATA;
	case AT_END: return CHUNKS_END;
	case AT_NOTHING: return CHUNKS_WRONG;
	default: return CHUNKS_MORE;
	}
}
