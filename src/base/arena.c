/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	_Alignas(max_align_t) unsigned char bytes[];
};

enum { BLOCK_BYTES_MIN = 4096, BLOCK_BYTES_MAX = 1 << 20 };

void arena_init(struct arena *arena, size_t cap)
{
	*arena = (struct arena){.cap = cap};
}

void arena_release(struct arena *arena)
{
	struct arena_block *block = arena->blocks;
	while (block) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
	*arena = (struct arena){.cap = arena->cap};
}

static struct arena_block *block_new(struct arena *arena, size_t size)
{
	size_t cap = arena->cap ? arena->cap : ARENA_CAP_DEFAULT;
	size_t want = arena->blocks ? arena->blocks->size * 2 : BLOCK_BYTES_MIN;
	if (want > BLOCK_BYTES_MAX)
		want = BLOCK_BYTES_MAX;
	if (want < size)
		want = size;
	if (want > cap - arena->used)
		want = cap - arena->used;
	if (want < size)
		return NULL;
	struct arena_block *block = malloc(sizeof *block + want);
	if (!block)
		return NULL;
	block->size = want;
	block->used = 0;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->used += want;
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	if (size > SIZE_MAX / 2) {
		arena->failed = true;
		return NULL;
	}
	size = (size + align - 1) / align * align;
	if (size == 0)
		size = align;
	struct arena_block *block = arena->blocks;
	if (!block || block->size - block->used < size)
		block = block_new(arena, size);
	if (!block) {
		arena->failed = true;
		return NULL;
	}
	void *memory = block->bytes + block->used;
	block->used += size;
	return memset(memory, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / 2 / size) {
		arena->failed = true;
		return NULL;
	}
	return arena_alloc(arena, count * size);
}

char *arena_strndup(struct arena *arena, const char *text, size_t size)
{
	char *copy = arena_alloc(arena, size + 1);
	if (copy && size)
		memcpy(copy, text, size);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return text ? arena_strndup(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = size < 0 ? NULL : arena_alloc(arena, (size_t)size + 1);
	if (text)
		vsnprintf(text, (size_t)size + 1, format, again);
	va_end(again);
	return text;
}
