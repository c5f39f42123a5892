/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h -- a file as a tree in which every scalar is text and every node has its line.
 *
 * Only mappings, lists and scalars, which every YAML parser reads in the same way. Anchors,
 * aliases, merge keys, tags, several documents and duplicate names are refused, because two parsers
 * could read two different contracts from one file. JSON is read as well. */
#ifndef CONTRACT_YAML_H
#define CONTRACT_YAML_H

#include "base/arena.h"
#include "base/err.h"

enum node_type { NODE_TEXT, NODE_LIST, NODE_MAP };

enum {
	YAML_BYTES_MAX = 1 << 20,
	YAML_DEPTH_MAX = 32,
	YAML_MEMBERS_MAX = 1024, /* of one mapping */
	YAML_NAME_BYTES_MAX = 255,
};

/* One value. Members and items are linked through `next`, in the order of the file. Text is valid
 * UTF-8 without control characters other than tab and newline, and without NUL. */
struct node {
	enum node_type type;
	const char *text; /* NODE_TEXT; never NULL then, "" when nothing was written */
	const char *name; /* when the parent is a mapping, else NULL */
	const char *file; /* as given to yaml_read */
	int line;         /* of the name where there is one, else of the value; from 1 */
	size_t count;     /* of children */
	struct node *child, *next;
};

/* Where reading stopped. */
struct yaml_error {
	int line; /* 0: the file as a whole */
	char text[256];
};

/* Read one document. Everything lives in `arena`; `file` is kept, not copied. IBID_INVALID or
 * IBID_LIMIT with `*ret_error` filled in, or IBID_NOMEM. `bytes_max` 0 means YAML_BYTES_MAX. */
IBID_CHECK enum ibid_code yaml_read(struct arena *arena, const char *file, const char *bytes,
                                    size_t size, size_t bytes_max, struct node **ret,
                                    struct yaml_error *ret_error);

/* NULL when `map` is not a mapping or has no such member. */
struct node *node_member(const struct node *map, const char *name);

#endif
