/* SPDX-License-Identifier: Apache-2.0 */
/* str.h -- growing byte strings with a maximum size. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Appending beyond the cap, or without memory, sets `failed` and leaves the content as it was; the
 * caller checks once at the end. `data` is always terminated once anything was appended. */
struct str {
	char *data;
	size_t size, room, cap;
	bool failed;
};

#define STR_INIT(cap_bytes) ((struct str){.cap = (cap_bytes)})

void str_release(struct str *str);
void str_clear(struct str *str); /* keeps the memory */
void str_add(struct str *str, const char *bytes, size_t size);
void str_adds(struct str *str, const char *text);
void str_addc(struct str *str, char byte);
void str_addf(struct str *str, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *str_text(const struct str *str); /* "" when empty */

/* Append as a JSON string, quotes included, escaped as RFC 8785 does. Bytes must be valid UTF-8. */
void str_add_json(struct str *str, const char *bytes, size_t size);

/* Hand over the memory (free with free()); NULL when failed or empty. */
char *str_take(struct str *str, size_t *ret_size);

#endif
