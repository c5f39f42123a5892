/* SPDX-License-Identifier: Apache-2.0 */
/* form.c -- read, inherit, refuse and document a kind of contract by its table of members. */
#include "contract/form.h"

#include "base/canon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES_MAX = 640 };

/* ---- Problems ------------------------------------------------------------------------------- */

static bool problem_known(const struct problems *problems, const char *file, int line,
                          const char *text)
{
	for (size_t i = 0; i < problems->count; i++) {
		const struct contract_problem *item = &problems->items[i];
		if (item->line == line && strcmp(item->file, file) == 0 && strcmp(item->text, text) == 0)
			return true;
	}
	return false;
}

void problem_add(struct problems *problems, const char *file, int line, const char *question,
                 const char *format, ...)
{
	char text[1024];
	va_list args;
	problems->found++;
	if (problems->count == PROBLEMS_MAX)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	/* A wrong answer in defaults.yaml is met once for every contract that inherits it. */
	if (problem_known(problems, file, line, text))
		return;
	struct contract_problem problem = {.file = file,
	                                   .line = line,
	                                   .question = question,
	                                   .text = arena_strdup(problems->arena, text)};
	if (problems->count == PROBLEMS_MAX - 1)
		problem = (struct contract_problem){
		    .file = file, .text = "and more: the list ends here, solve these first"};
	if (problem.text)
		problems->items[problems->count++] = problem;
}

void problem_write(struct str *out, const struct contract_problem *problem)
{
	str_adds(out, problem->file);
	if (problem->line > 0)
		str_addf(out, ":%d", problem->line);
	str_addf(out, ": %s", problem->text);
	if (problem->question)
		str_addf(out, "\n  %s", problem->question);
}

/* ---- Paths ---------------------------------------------------------------------------------- */

static const struct member *form_row(const struct form *form, const char *path)
{
	for (size_t i = 0; i < form->count; i++)
		if (strcmp(form->members[i].path, path) == 0)
			return &form->members[i];
	return NULL;
}

/* Does a row lie below `path`? */
static bool form_branch(const struct form *form, const char *path)
{
	size_t size = strlen(path);
	for (size_t i = 0; i < form->count; i++)
		if (strncmp(form->members[i].path, path, size) == 0 && form->members[i].path[size] == '.')
			return true;
	return false;
}

/* "key" and "retain" give "key.retain"; a name at the root stands alone. */
static void path_join(char ret[PATH_BYTES_MAX], const char *path, const char *name)
{
	snprintf(ret, PATH_BYTES_MAX, "%s%s%s", path, *path ? "." : "", name);
}

/* `key:` with nothing after it: a mapping whose members are all missing. */
static bool node_blank(const struct node *node)
{
	return node->type == NODE_TEXT && node->text[0] == '\0';
}

/* Follow `path`; `*ret_last` is the last mapping on the way. NULL when it ends before. */
static const struct node *descend(const struct node *map, const char *path,
                                  const struct node **ret_last)
{
	const struct node *node = map;
	while (node) {
		char name[PATH_BYTES_MAX];
		size_t size = strcspn(path, ".");
		*ret_last = node;
		if (node->type != NODE_MAP)
			return NULL;
		snprintf(name, sizeof name, "%.*s", (int)size, path);
		node = node_member(node, name);
		if (path[size] == '\0')
			return node;
		path += size + 1;
	}
	return NULL;
}

const struct node *form_find(const struct node *map, const char *path)
{
	const struct node *last = NULL;
	return descend(map, path, &last);
}

/* ---- What is not in the table --------------------------------------------------------------- */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;
	return least < c ? least : c;
}

/* Levenshtein's distance; long names are far from everything. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], b_size = strlen(b);
	if (strlen(a) >= 64 || b_size >= 63)
		return 64;
	for (size_t j = 0; j <= b_size; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_size; j++) {
			size_t above = row[j];
			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_size];
}

/* The name that a row has directly below `path` ("" is the root), or false. */
static bool name_below(const struct member *row, const char *path, char ret[PATH_BYTES_MAX])
{
	size_t size = strlen(path);
	const char *rest = row->path;
	if (size) {
		if (strncmp(rest, path, size) != 0 || rest[size] != '.')
			return false;
		rest += size + 1;
	}
	snprintf(ret, PATH_BYTES_MAX, "%.*s", (int)strcspn(rest, "."), rest);
	return true;
}

/* The nearest name at this place, or the path of the row that ends in just this name. */
static bool suggestion(const struct form *form, const char *path, const char *name,
                       char ret[PATH_BYTES_MAX])
{
	char candidate[PATH_BYTES_MAX];
	size_t best = strlen(name) > 4 ? 3 : 2;
	bool found = false;
	for (size_t i = 0; i < form->count; i++) {
		if (!name_below(&form->members[i], path, candidate) || distance(name, candidate) >= best)
			continue;
		best = distance(name, candidate);
		memcpy(ret, candidate, PATH_BYTES_MAX);
		found = true;
	}
	for (size_t i = 0; !found && i < form->count; i++) {
		const char *last = strrchr(form->members[i].path, '.');
		if (!last || strcmp(last + 1, name) != 0)
			continue;
		snprintf(ret, PATH_BYTES_MAX, "%s", form->members[i].path);
		found = true;
	}
	return found;
}

static void list_known(const struct form *form, const char *path, struct str *out)
{
	char name[PATH_BYTES_MAX], last[PATH_BYTES_MAX] = "";
	for (size_t i = 0; i < form->count; i++) {
		if (!name_below(&form->members[i], path, name) || strcmp(name, last) == 0)
			continue;
		str_addf(out, "%s%s", *last ? ", " : "", name);
		memcpy(last, name, sizeof last);
	}
}

static void refuse_unknown(struct problems *problems, const struct form *form, const char *prefix,
                           const char *path, const struct node *node)
{
	char full[PATH_BYTES_MAX], near[PATH_BYTES_MAX];
	path_join(full, path, node->name);
	if (strchr(node->name, '.') && form_row(form, full)) {
		PROBLEM_AT(problems, node,
		           "%s%s is one name here: write `%.*s:` as a mapping with `%s` in it", prefix,
		           full, (int)strcspn(node->name, "."), node->name, strchr(node->name, '.') + 1);
	} else if (suggestion(form, path, node->name, near)) {
		PROBLEM_AT(problems, node, "%s%s is not a member of %s; did you mean `%s`?", prefix, full,
		           form->what, near);
	} else {
		struct str known = STR_INIT(4096);
		list_known(form, path, &known);
		PROBLEM_AT(problems, node, "%s%s is not a member of %s; known here: %s", prefix, full,
		           form->what, str_text(&known));
		str_release(&known);
	}
}

static void check_known(struct problems *problems, const struct form *form, const char *prefix,
                        const char *path, const struct node *map, bool defaults);

/* The same walk checks contracts and defaults.yaml, which must leave some answers to contracts. */
static void check_member(struct problems *problems, const struct form *form, const char *prefix,
                         const char *path, const struct node *node, bool defaults)
{
	char full[PATH_BYTES_MAX];
	path_join(full, path, node->name);
	const struct member *row = strchr(node->name, '.') ? NULL : form_row(form, full);
	if (row && defaults && (row->flags & MEMBER_OWN))
		PROBLEM_AT(problems, node, "%s can't be answered for all contracts: each has its own",
		           full);
	if (row)
		return;
	if (strchr(node->name, '.') || !form_branch(form, full))
		refuse_unknown(problems, form, prefix, path, node);
	else if (node->type != NODE_MAP && !node_blank(node))
		PROBLEM_AT(problems, node, "%s%s must be a mapping", prefix, full);
	else
		check_known(problems, form, prefix, full, node, defaults);
}

static void check_known(struct problems *problems, const struct form *form, const char *prefix,
                        const char *path, const struct node *map, bool defaults)
{
	for (const struct node *node = map->child; node; node = node->next)
		check_member(problems, form, prefix, path, node, defaults);
}

/* An answer for the kinds that know it; the first form has the word where none does. */
static void check_default(struct problems *problems, const struct form *const *forms, size_t count,
                          const struct node *node)
{
	bool known = false;
	for (size_t i = 0; i < count; i++) {
		if (!form_row(forms[i], node->name) && !form_branch(forms[i], node->name))
			continue;
		check_member(problems, forms[i], "", "", node, true);
		known = true;
	}
	if (!known)
		check_member(problems, forms[0], "", "", node, true);
}

void form_check_defaults(struct problems *problems, const struct form *const *forms, size_t count,
                         const struct node *defaults)
{
	if (defaults->type != NODE_MAP)
		PROBLEM_AT(problems, defaults, "defaults must be a mapping of members to answers");
	for (const struct node *node = defaults->type == NODE_MAP ? defaults->child : NULL; node;
	     node = node->next)
		check_default(problems, forms, count, node);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void add_choices(struct str *out, const char *const *choices, const char *between)
{
	for (size_t i = 0; choices[i]; i++)
		str_addf(out, "%s%s", i ? between : "", choices[i]);
}

/* "(a duration such as 30d; longer than any client may retry)" without the parentheses. */
static void add_says(struct str *out, const struct member *member)
{
	if (member->type->says)
		str_adds(out, member->type->says);
	if (member->type->says && member->choices)
		str_adds(out, ": ");
	if (member->choices)
		add_choices(out, member->choices, " | ");
	if (member->hint)
		str_addf(out, "; %s", member->hint);
}

const char *member_question(struct arena *arena, const struct member *member)
{
	struct str text = STR_INIT(2048);
	str_addf(&text, "%s (", member->question);
	add_says(&text, member);
	str_addc(&text, ')');
	const char *question = arena_strdup(arena, str_text(&text));
	str_release(&text);
	return question;
}

static void refuse_missing(struct reading *reading, const struct member *member, const char *prefix,
                           const struct node *enclosing)
{
	problem_add(reading->problems, enclosing->file, enclosing->line,
	            member_question(reading->arena, member), "%s%s is missing", prefix, member->path);
}

void form_read(struct reading *reading, const struct form *form, const char *prefix,
               const struct node *map, void *base)
{
	check_known(reading->problems, form, prefix, "", map, false);
	for (size_t i = 0; i < form->count; i++) {
		const struct member *member = &form->members[i];
		const struct node *enclosing = map;
		const struct node *node = descend(map, member->path, &enclosing);
		char path[PATH_BYTES_MAX];
		snprintf(path, sizeof path, "%s%s", prefix, member->path);
		if (node)
			member->type->read(reading, member, path, node, (char *)base + member->offset);
		else if ((member->flags & MEMBER_REQUIRED) &&
		         (enclosing->type == NODE_MAP || node_blank(enclosing)))
			refuse_missing(reading, member, prefix, enclosing);
	}
}

/* ---- Inheriting ----------------------------------------------------------------------------- */

struct merge {
	struct arena *arena;
	const struct form *form;
	struct texts *inherited;
};

static struct node *node_copy(struct merge *merge, const struct node *node)
{
	struct node *copy = arena_alloc(merge->arena, sizeof *copy);
	if (copy) {
		*copy = *node;
		copy->next = NULL;
	}
	return copy;
}

/* The table bounds how many paths can be inherited. */
static void note_inherited(struct merge *merge, const char *path)
{
	struct texts *inherited = merge->inherited;
	const char *copy = arena_strdup(merge->arena, path);
	if (!inherited->items)
		inherited->items = arena_array(merge->arena, merge->form->count, sizeof *inherited->items);
	if (copy && inherited->items && inherited->count < merge->form->count)
		inherited->items[inherited->count++] = copy;
}

static struct node *merge_map(struct merge *merge, const char *path, const struct node *map,
                              const struct node *defaults);

/* The answer for `path`: the contract's own takes precedence, mappings of the form are merged. */
static struct node *merge_member(struct merge *merge, const char *path, const struct node *map,
                                 const struct node *own, const struct node *given)
{
	const struct member *row = form_row(merge->form, path);
	if (row ? own || (row->flags & MEMBER_OWN) : !form_branch(merge->form, path))
		return own ? node_copy(merge, own) : NULL;
	if (row) {
		note_inherited(merge, path);
		return node_copy(merge, given);
	}
	bool blank = !own || node_blank(own);
	if (given->type != NODE_MAP || (!blank && own->type != NODE_MAP))
		return own ? node_copy(merge, own) : NULL;
	/* A mapping that only defaults.yaml has: what is missing in it is missing in the contract. */
	const struct node *where = own ? own : map;
	struct node empty = {.type = NODE_MAP,
	                     .text = "",
	                     .file = where->file,
	                     .line = where->line,
	                     .name = given->name};
	return merge_map(merge, path, blank ? &empty : own, given);
}

static void append(struct node *map, struct node ***end, struct node *child)
{
	if (!child)
		return;
	**end = child;
	*end = &child->next;
	map->count++;
}

static struct node *merge_map(struct merge *merge, const char *path, const struct node *map,
                              const struct node *defaults)
{
	char full[PATH_BYTES_MAX];
	struct node *result = node_copy(merge, map);
	if (!result)
		return NULL;
	struct node **end = &result->child;
	result->child = NULL;
	result->count = 0;
	for (const struct node *own = map->child; own; own = own->next) {
		const struct node *given = node_member(defaults, own->name);
		path_join(full, path, own->name);
		append(result, &end,
		       given ? merge_member(merge, full, map, own, given) : node_copy(merge, own));
	}
	for (const struct node *given = defaults->child; given; given = given->next) {
		path_join(full, path, given->name);
		if (!node_member(map, given->name) && !strchr(given->name, '.'))
			append(result, &end, merge_member(merge, full, map, NULL, given));
	}
	return result;
}

struct node *form_merge(struct arena *arena, const struct form *form, const struct node *map,
                        const struct node *defaults, struct texts *ret)
{
	struct merge merge = {.arena = arena, .form = form, .inherited = ret};
	struct node none = {.type = NODE_MAP};
	bool usable = defaults && defaults->type == NODE_MAP;
	struct node *result = merge_map(&merge, "", map, usable ? defaults : &none);
	return arena->failed ? NULL : result;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct node *left = *(const struct node *const *)a;
	const struct node *right = *(const struct node *const *)b;
	return canon_name_cmp(left->name, strlen(left->name), right->name, strlen(right->name));
}

const struct node **nodes_by_name(const struct node *map)
{
	const struct node **sorted = calloc(map->count + 1, sizeof *sorted);
	size_t count = 0;
	if (!sorted)
		return NULL;
	for (const struct node *child = map->child; child; child = child->next)
		sorted[count++] = child;
	qsort(sorted, count, sizeof *sorted, by_name);
	return sorted;
}

static void map_write(struct str *out, const struct node *map)
{
	const struct node **sorted = nodes_by_name(map);
	if (!sorted) {
		out->failed = true;
		return;
	}
	str_addc(out, '{');
	for (size_t i = 0; i < map->count; i++) {
		str_adds(out, i ? "," : "");
		str_add_json(out, sorted[i]->name, strlen(sorted[i]->name));
		str_addc(out, ':');
		node_write(out, sorted[i]);
	}
	str_addc(out, '}');
	free(sorted);
}

void node_write(struct str *out, const struct node *node)
{
	switch (node->type) {
	case NODE_TEXT: str_add_json(out, node->text, strlen(node->text)); break;
	case NODE_LIST:
		str_addc(out, '[');
		for (const struct node *child = node->child; child; child = child->next) {
			str_adds(out, child == node->child ? "" : ",");
			node_write(out, child);
		}
		str_addc(out, ']');
		break;
	case NODE_MAP: map_write(out, node); break;
	}
}

/* A cell of a Markdown table ends at a bar. */
static void add_cell(struct str *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			str_addc(out, '\\');
		str_addc(out, *text);
	}
}

void form_reference(struct str *out, const struct form *form)
{
	str_adds(out, "| member | value | must | question |\n|---|---|---|---|\n");
	for (size_t i = 0; i < form->count; i++) {
		const struct member *member = &form->members[i];
		struct str says = STR_INIT(2048);
		add_says(&says, member);
		str_addf(out, "| `%s` | ", member->path);
		add_cell(out, str_text(&says));
		str_addf(out, " | %s%s | ", member->flags & MEMBER_REQUIRED ? "yes" : "",
		         (member->flags & MEMBER_REQUIRED) && (member->flags & MEMBER_OWN) ? ", own" : "");
		add_cell(out, member->question);
		str_adds(out, " |\n");
		str_release(&says);
	}
}
