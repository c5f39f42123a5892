/* SPDX-License-Identifier: Apache-2.0 */
/* form.h -- a kind of contract as a table of members.
 *
 * One row has a member's name, its values, its place in the struct, whether it must be answered
 * and the question it answers. Reading, inheriting, refusing and documenting all follow the
 * table, so a new kind is a new table. Members of nested mappings are rows with a dotted path. */
#ifndef CONTRACT_FORM_H
#define CONTRACT_FORM_H

#include "base/str.h"
#include "contract/contract.h"
#include "contract/yaml.h"

/* ---- Problems ------------------------------------------------------------------------------- */

enum { PROBLEMS_MAX = 200 };

/* In the order in which they were found, each once. */
struct problems {
	struct arena *arena;
	struct contract_problem items[PROBLEMS_MAX];
	size_t count;
	size_t found; /* all of them, listed or not */
};

/* `question` may be NULL. The last entry of a full list says that there are more. */
void problem_add(struct problems *problems, const char *file, int line, const char *question,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The problem at a value. */
#define PROBLEM_AT(problems, node, ...)                                                            \
	problem_add((problems), (node)->file, (node)->line, NULL, __VA_ARGS__)

/* "FILE:LINE: TEXT", the question indented on a second line. */
void problem_write(struct str *out, const struct contract_problem *problem);

/* ---- Forms ---------------------------------------------------------------------------------- */

/* A script that a contract names, and where it names it. */
struct script_ref {
	const char *path; /* "handler.sql" */
	const char *file; /* may contain $store */
	const struct node *node;
	struct script_ref *next;
};

/* One document on its way to a contract. */
struct reading {
	struct arena *arena;
	struct problems *problems;
	struct script_ref *scripts;
	const struct contract *contract; /* as far as it is read: fields come before what uses them */
	bool kept; /* a text from a store: it was accepted under the rules of its version */
};

struct member;

/* Check `node` and store its value at `target`. `path` names the member in messages. */
typedef void member_read(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target);

struct member_type {
	const char *says; /* "a duration such as 30d"; NULL: the choices say it */
	member_read *read;
};

enum member_flag {
	MEMBER_REQUIRED = 1, /* left open is refused */
	MEMBER_OWN = 2,      /* each contract must answer for itself; defaults.yaml may not */
	MEMBER_SOME = 4,     /* lists: at least one item */
};

struct member {
	const char *path;
	const struct member_type *type;
	size_t offset;
	unsigned flags;
	const char *question;
	const char *hint; /* advice for answering; may be NULL */
	const char *const
	    *choices;     /* ended by NULL; the index is the enum's value or the bit's number */
	int64_t min, max; /* numbers */
};

struct form {
	const char *kind; /* the member that names the kind: "command" */
	const char *what; /* "a command" */
	const struct member *members;
	size_t count;
};

/* Read `map` into the struct at `base`. `prefix` goes before each path in messages. */
void form_read(struct reading *reading, const struct form *form, const char *prefix,
               const struct node *map, void *base);

/* Refuse members that defaults.yaml may not answer, or that none of the forms has. */
void form_check_defaults(struct problems *problems, const struct form *const *forms, size_t count,
                         const struct node *defaults);

/* `map` with missing answers taken from `defaults` (may be NULL); their paths in `*ret`. NULL when
 * memory is exhausted. */
struct node *form_merge(struct arena *arena, const struct form *form, const struct node *map,
                        const struct node *defaults, struct texts *ret);

/* Canonical JSON of the tree: every scalar a string, members sorted. */
void node_write(struct str *out, const struct node *node);

/* The children of a mapping in that order, `map->count` of them; free() it. NULL: no memory. */
const struct node **nodes_by_name(const struct node *map);

/* The value at a dotted path, NULL when absent. */
const struct node *form_find(const struct node *map, const char *path);

/* The rows as a Markdown table. */
void form_reference(struct str *out, const struct form *form);

/* ---- Types ---------------------------------------------------------------------------------- */

extern const struct member_type type_text;        /* const char *: one line */
extern const struct member_type type_name;        /* const char *: [a-z][a-z0-9-]{0,62} */
extern const struct member_type type_int;         /* int: min..max */
extern const struct member_type type_size;        /* size_t: min..max */
extern const struct member_type type_decimal;     /* struct decimal * */
extern const struct member_type type_flag;        /* bool: yes, no, true, false */
extern const struct member_type type_duration;    /* int64_t: microseconds, at most 100 years */
extern const struct member_type type_choice;      /* an enum */
extern const struct member_type type_choice_flag; /* bool: the second of two choices */
extern const struct member_type type_choice_name; /* const char *: the choice itself */
extern const struct member_type type_bits;        /* unsigned: a list of choices */
extern const struct member_type type_texts;       /* struct texts */
extern const struct member_type type_pointers;    /* struct texts: JSON Pointers, `*` allowed */

/* ---- For readers of special members --------------------------------------------------------- */

/* One line of text that is not empty, else a problem and NULL. */
const char *member_text(struct reading *reading, const struct member *member, const char *path,
                        const struct node *node);

/* A list of such lines, none twice. */
bool member_texts(struct reading *reading, const struct member *member, const char *path,
                  const struct node *node, struct texts *ret);

/* [first][rest...] of at most `max` bytes; the sets are written out as strings. */
bool text_matches(const char *text, const char *first, const char *rest, size_t max);
extern const char LOWER[], LETTERS_[], LETTERS_DIGITS_[];

/* A JSON Pointer to a member: not the root; `*` only where `star`. Else a problem. */
bool pointer_check(struct reading *reading, const char *path, const struct node *node, bool star);

/* A letter, then at most EVENT_CHARS_MAX - 1 letters, digits, `.`, `_` and `-`. */
enum { EVENT_CHARS_MAX = 127 };
bool event_type_ok(const char *type);

/* The question of a member, such as "duplicates.completed", as a sentence with its values. */
const char *member_question(struct arena *arena, const struct member *member);

#endif
