/* SPDX-License-Identifier: Apache-2.0 */
/* words.h -- the words of an enum, as stores keep them and people read them.
 *
 * A store of a newer schema may hold a word that this binary does not know. It gets a number behind
 * the known ones, so that a list shows the word as it is; whatever decides on the row asks
 * words_known first. Numbers of newer words are the process's own: they are never stored. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include "base/arena.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { WORDS_NEWER = 8 };

struct words {
	const char *const *names; /* "" stands for SQL NULL */
	size_t count;
	_Atomic(const char *) newer[WORDS_NEWER];
};

/* Define `prefix_words`, `prefix_name` and `prefix_read` of an enum from an X-macro of
 * X(symbol, "word"). The name of "" is NULL; reading accepts known words only. */
#define WORDS_TEXT(symbol, text, ...) text,
#define WORDS_DEFINE(prefix, type, LIST)                                                           \
	static const char *const prefix##_texts[] = {LIST(WORDS_TEXT)};                                \
	struct words prefix##_words = {                                                                \
	    prefix##_texts, sizeof prefix##_texts / sizeof *prefix##_texts, {NULL}};                   \
	const char *prefix##_name(enum type value)                                                     \
	{                                                                                              \
		return words_text(&prefix##_words, (int)value);                                            \
	}                                                                                              \
	bool prefix##_read(const char *name, enum type *ret)                                           \
	{                                                                                              \
		int number = 0;                                                                            \
		if (!words_find(&prefix##_words, name, &number))                                           \
			return false;                                                                          \
		*ret = (enum type)number;                                                                  \
		return true;                                                                               \
	}                                                                                              \
	struct words prefix##_words

/* False: the word is not known. */
bool words_find(const struct words *words, const char *text, int *ret);

/* The number of any word, newer ones included. */
int words_number(struct words *words, const char *text);

/* NULL stands for "". */
const char *words_text(const struct words *words, int number);

static inline bool words_known(const struct words *words, int number)
{
	return number >= 0 && (size_t)number < words->count;
}

/* Several words, joined by commas, as bits: 1 << number. A newer word has a bit, too. NULL without
 * memory. */
const char *words_join(const struct words *words, struct arena *arena, unsigned bits);
unsigned words_split(struct words *words, const char *text);

/* The same for what a person gives: false unless there is one, and each is known. */
bool words_read(const struct words *words, const char *text, unsigned *ret);

#endif
