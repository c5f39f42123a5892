/* SPDX-License-Identifier: Apache-2.0 */
/* words.c -- the words of an enum, those of newer schemas included. */
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

static bool same(const char *name, const char *text, size_t size)
{
	return strncmp(name, text, size) == 0 && !name[size];
}

static bool find(const struct words *words, const char *text, size_t size, int *ret)
{
	for (size_t i = 0; i < words->count; i++) {
		if (same(words->names[i], text, size)) {
			*ret = (int)i;
			return true;
		}
	}
	return false;
}

bool words_find(const struct words *words, const char *text, int *ret)
{
	return find(words, text ? text : "", text ? strlen(text) : 0, ret);
}

/* A newer word takes the first free place and keeps it. When all are taken, the last one stands for
 * every other word. */
static int newer(struct words *words, const char *text, size_t size)
{
	size_t i = 0;
	char *copy = strndup(text, size);
	while (copy && i < WORDS_NEWER) {
		const char *there = NULL;
		if (atomic_compare_exchange_strong(&words->newer[i], &there, copy))
			return (int)(words->count + i);
		if (same(there, text, size))
			break;
		i++;
	}
	free(copy);
	return (int)(words->count + (i < WORDS_NEWER ? i : WORDS_NEWER - 1));
}

static int number_of(struct words *words, const char *text, size_t size)
{
	int known = 0;
	return find(words, text, size, &known) ? known : newer(words, text, size);
}

int words_number(struct words *words, const char *text)
{
	return number_of(words, text ? text : "", text ? strlen(text) : 0);
}

const char *words_text(const struct words *words, int number)
{
	const char *text = NULL;
	if (words_known(words, number))
		text = words->names[number];
	else if (number >= 0 && (size_t)number < words->count + WORDS_NEWER)
		text = atomic_load(&words->newer[(size_t)number - words->count]);
	return text && *text ? text : NULL; /* "": SQL NULL */
}

const char *words_join(const struct words *words, struct arena *arena, unsigned bits)
{
	const char *text = "";
	for (int i = 0; text && i < (int)(words->count + WORDS_NEWER); i++) {
		if (bits & 1U << i)
			text = arena_printf(arena, "%s%s%s", text, *text ? "," : "", words_text(words, i));
	}
	return text;
}

unsigned words_split(struct words *words, const char *text)
{
	unsigned bits = 0;
	while (text && *text) {
		size_t size = strcspn(text, ",");
		bits |= 1U << number_of(words, text, size);
		text += size + (text[size] == ',');
	}
	return bits;
}

bool words_read(const struct words *words, const char *text, unsigned *ret)
{
	unsigned bits = 0;
	for (;;) {
		size_t size = strcspn(text, ",");
		int number = 0;
		if (!find(words, text, size, &number))
			return false;
		bits |= 1U << number;
		if (!text[size])
			break;
		text += size + 1;
	}
	*ret = bits;
	return true;
}
