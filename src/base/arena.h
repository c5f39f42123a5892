/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h -- memory that lives as long as one request, and is released at once. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct arena_block;

/* A zeroed arena is ready to use. `cap` is the most it may hold; 0 means ARENA_CAP_DEFAULT. When an
 * allocation fails the arena remembers it (`failed`), so that a chain of calls may check once. */
struct arena {
	struct arena_block *blocks;
	size_t used, cap;
	bool failed;
};

enum { ARENA_CAP_DEFAULT = 256 << 20 };

void arena_init(struct arena *arena, size_t cap);
void arena_release(struct arena *arena); /* frees everything; the arena may be used again */

/* Aligned for any type, zeroed. NULL when memory or the cap is exhausted. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t count, size_t size);
char *arena_strndup(struct arena *arena, const char *text, size_t size); /* adds a NUL */
char *arena_strdup(struct arena *arena, const char *text);               /* NULL gives NULL */
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
