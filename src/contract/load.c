/* SPDX-License-Identifier: Apache-2.0 */
/* load.c -- a directory of contracts.
 *
 * Every *.yaml file that is not hidden is a contract, except defaults.yaml. All files are read
 * before anything is refused, so that one run reports all problems. */
#include "contract/build.h"
#include "contract/event.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 10000, PATH_TEXT_MAX = 4096 };
static const char *const store_names[] = {"sqlite", "postgres"};
static const char defaults_name[] = "defaults.yaml";

struct contracts {
	struct arena arena;
	const char *dir;
	int dir_fd;
	struct problems problems;
	struct contract_list {
		struct contract **items; /* sorted by name */
		size_t count;
	} commands, events;
	struct emits_ref *emits, **emits_end; /* what commands emit, and where they say so */
	bool event_refused; /* a file of an event had problems: its type may be missing */
};

struct emits_ref {
	const struct contract *contract;
	const struct node *node;
	struct emits_ref *next;
};

/* ---- Files ---------------------------------------------------------------------------------- */

static enum ibid_code code_of_errno(int number)
{
	switch (number) {
	case ENOENT: return IBID_NOT_FOUND;
	case EACCES:
	case EPERM: return IBID_DENIED;
	case ENOMEM: return IBID_NOMEM;
	case ENOTDIR:
	case EISDIR: return IBID_INVALID;
	default: return IBID_IO;
	}
}

static enum ibid_code read_all(int fd, struct arena *arena, size_t size, char **ret,
                               size_t *ret_size)
{
	char *bytes = arena_alloc(arena, size + 1);
	size_t used = 0;
	if (!bytes)
		return IBID_NOMEM;
	while (used < size) {
		ssize_t got = read(fd, bytes + used, size - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return code_of_errno(errno);
		if (got == 0)
			break;
		used += (size_t)got;
	}
	*ret = bytes;
	*ret_size = used;
	return IBID_OK;
}

/* The bytes of a regular file of the directory; the text of an error does not name the file. */
static enum ibid_code file_read(int dir_fd, const char *name, struct arena *arena, char **ret,
                                size_t *ret_size, struct ibid_err *err)
{
	struct stat stat;
	/* Not blocking, so that a FIFO is refused and not waited for. */
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_write(err, code_of_errno(errno), "it can't be read: %s", strerror(errno));
	enum ibid_code code = IBID_OK;
	if (fstat(fd, &stat) < 0)
		code = err_set(err, IBID_IO, "it can't be read: %s", strerror(errno));
	else if (!S_ISREG(stat.st_mode))
		code = err_set(err, IBID_INVALID, "it is not a file");
	else if (stat.st_size > YAML_BYTES_MAX)
		code = err_set(err, IBID_LIMIT, "it is larger than %d bytes", YAML_BYTES_MAX);
	else if ((code = read_all(fd, arena, (size_t)stat.st_size, ret, ret_size)))
		err_set(err, code, "it can't be read: %s", strerror(errno));
	close(fd);
	return code;
}

/* "x.$store.sql" for one store. */
const char *contract_file_name(struct arena *arena, const char *file, const char *store_name)
{
	const char *mark = strstr(file, "$store");
	if (!mark)
		return file;
	return arena_printf(arena, "%.*s%s%s", (int)(mark - file), file, store_name, mark + 6);
}

enum ibid_code contracts_read_file(const struct contracts *contracts, struct arena *arena,
                                   const char *file, const char *store_name, const char **ret,
                                   struct ibid_err *err)
{
	char *bytes = NULL;
	size_t size = 0;
	const char *name = contract_file_name(arena, file, store_name);
	if (!name)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (strchr(name, '/'))
		return err_set(err, IBID_INVALID, "%s is not the plain name of a file", name);
	struct ibid_err why = {0};
	enum ibid_code code = file_read(contracts->dir_fd, name, arena, &bytes, &size, &why);
	if (code == IBID_NOT_FOUND)
		return err_set(err, code, "%s/%s does not exist", contracts->dir, name);
	if (code)
		return err_set(err, code, "%s/%s: %s", contracts->dir, name, why.text);
	assert(bytes);
	if (memchr(bytes, '\0', size))
		return err_set(err, IBID_INVALID, "%s/%s holds a NUL byte: it is not text", contracts->dir,
		               name);
	*ret = bytes;
	return IBID_OK;
}

/* ---- One file ------------------------------------------------------------------------------- */

static const char *path_of(struct contracts *contracts, const char *name)
{
	const char *path = arena_printf(&contracts->arena, "%s/%s", contracts->dir, name);
	return path ? path : name;
}

/* The tree of a file, or NULL after a problem. */
static struct node *tree_of(struct contracts *contracts, const char *name)
{
	char *bytes = NULL;
	size_t size = 0;
	struct node *root = NULL;
	struct ibid_err err = {0};
	struct yaml_error where = {0};
	const char *path = path_of(contracts, name);
	enum ibid_code code = file_read(contracts->dir_fd, name, &contracts->arena, &bytes, &size,
	                                &err);
	if (code) {
		problem_add(&contracts->problems, path, 0, NULL, "%s", err.text);
		return NULL;
	}
	code = yaml_read(&contracts->arena, path, bytes, size, 0, &root, &where);
	if (code == IBID_NOMEM)
		contracts->arena.failed = true;
	else if (code)
		problem_add(&contracts->problems, path, where.line, NULL, "%s", where.text);
	return code ? NULL : root;
}

static bool file_exists(const struct contracts *contracts, const char *name)
{
	struct stat stat;
	return name && fstatat(contracts->dir_fd, name, &stat, 0) == 0 && S_ISREG(stat.st_mode);
}

static void check_script(struct contracts *contracts, const struct script_ref *script)
{
	struct arena *arena = &contracts->arena;
	if (!strstr(script->file, "$store")) {
		if (!file_exists(contracts, script->file))
			PROBLEM_AT(&contracts->problems, script->node,
			           "%s names %s, which does not exist in %s", script->path, script->file,
			           contracts->dir);
		return;
	}
	const char *first = contract_file_name(arena, script->file, store_names[0]);
	const char *second = contract_file_name(arena, script->file, store_names[1]);
	if (first && second && !file_exists(contracts, first) && !file_exists(contracts, second))
		PROBLEM_AT(&contracts->problems, script->node,
		           "%s names %s, but neither %s nor %s exists in %s", script->path, script->file,
		           first, second, contracts->dir);
}

/* One directory holds one version of each contract, and a route leads to one of them. */
static bool check_twins(struct contracts *contracts, const struct contract_list *list,
                        const struct contract *contract, const struct node *root)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct contract *other = list->items[i];
		if (strcmp(other->name, contract->name) == 0) {
			PROBLEM_AT(&contracts->problems, root->child, "%s is declared twice, first in %s/%s",
			           contract->name, contracts->dir, other->file);
			return false;
		}
		if (*contract->route && strcmp(other->route, contract->route) == 0) {
			PROBLEM_AT(&contracts->problems, form_find(root, "route"),
			           "route %s leads to %s already, in %s/%s", contract->route, other->name,
			           contracts->dir, other->file);
			return false;
		}
	}
	return true;
}

/* An answer that defaults.yaml gave has its place in the contract as a whole. */
static void note_emits(struct contracts *contracts, const struct contract *contract,
                       const struct node *node, const struct node *root)
{
	struct emits_ref *ref = arena_alloc(&contracts->arena, sizeof *ref);
	if (!ref)
		return;
	*ref = (struct emits_ref){contract, node ? node : root, NULL};
	*contracts->emits_end = ref;
	contracts->emits_end = &ref->next;
}

/* An event that is declared is of the aggregate that its contract says, or says it itself. */
static void check_aggregates(struct contracts *contracts, const struct emits_ref *ref)
{
	for (size_t i = 0; i < ref->contract->event_count; i++) {
		const struct contract_emit *emit = &ref->contract->events[i];
		const struct event_contract *event = contracts_event(contracts, emit->type);
		if (!event && !emit->aggregate_type)
			PROBLEM_AT(&contracts->problems, ref->node,
			           "emits.%s.aggregate_type is missing, and %s has no contract that says it",
			           emit->type, emit->type);
		else if (event && emit->aggregate_type &&
		         strcmp(event->rule.aggregate, emit->aggregate_type) != 0)
			PROBLEM_AT(&contracts->problems, ref->node,
			           "emits.%s.aggregate_type is %s, and the event's contract says %s",
			           emit->type, emit->aggregate_type, event->rule.aggregate);
	}
}

/* Where a type has no contract, none of the directory has one: then events go nowhere. */
static void check_emits(struct contracts *contracts)
{
	for (const struct emits_ref *ref = contracts->emits; ref && !contracts->event_refused;
	     ref = ref->next)
		check_aggregates(contracts, ref);
	if (!contracts->events.count || contracts->event_refused)
		return;
	for (const struct emits_ref *ref = contracts->emits; ref; ref = ref->next) {
		const struct texts *emits = &ref->contract->emits;
		for (size_t i = 0; i < emits->count; i++)
			if (!contracts_event(contracts, emits->items[i]))
				PROBLEM_AT(&contracts->problems, ref->node,
				           "emits names %s, which has no contract in %s, as other events have: add "
				           "one that begins with `event: %s`",
				           emits->items[i], contracts->dir, emits->items[i]);
	}
}

static void load_contract(struct contracts *contracts, const char *name,
                          const struct node *defaults)
{
	struct reading reading = {.arena = &contracts->arena, .problems = &contracts->problems};
	struct node *root = tree_of(contracts, name);
	struct contract *contract = root ? contract_build(&reading, root, defaults, false) : NULL;
	size_t before = contracts->problems.found;
	for (const struct script_ref *script = reading.scripts; script; script = script->next)
		check_script(contracts, script);
	if (!contract) { /* it may have been an event */
		contracts->event_refused |= !root || !node_member(root, "command");
		return;
	}
	bool event = contract->kind == CONTRACT_EVENT;
	struct contract_list *list = event ? &contracts->events : &contracts->commands;
	if (contracts->problems.found != before || !check_twins(contracts, list, contract, root))
		return;
	contract->file = name;
	list->items[list->count++] = contract;
	if (!event)
		note_emits(contracts, contract, form_find(root, "emits"), root);
}

/* ---- The directory -------------------------------------------------------------------------- */

struct names {
	const char **items;
	size_t count, room;
	size_t contracts; /* of them are contracts, by their ending */
};

static bool ends_with(const char *text, const char *ending)
{
	size_t size = strlen(text), tail = strlen(ending);
	return size > tail && strcasecmp(text + size - tail, ending) == 0;
}

static bool names_add(struct names *names, struct arena *arena, const char *name)
{
	if (names->count == names->room) {
		size_t room = names->room ? names->room * 2 : 64;
		const char **items = arena_array(arena, room, sizeof *items);
		if (!items)
			return false;
		if (names->count)
			memcpy(items, names->items, names->count * sizeof *items);
		names->items = items;
		names->room = room;
	}
	names->items[names->count] = arena_strdup(arena, name);
	return names->items[names->count++];
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names that look like contracts, in order, so that problems come in the same order everywhere. */
static enum ibid_code list_dir(struct contracts *contracts, struct names *ret, struct ibid_err *err)
{
	int fd = openat(contracts->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int number = errno;
		if (fd >= 0)
			close(fd);
		return err_write(err, code_of_errno(number), "%s can't be read: %s", contracts->dir,
		                 strerror(number));
	}
	enum ibid_code code = IBID_OK;
	for (const struct dirent *entry; !code && (entry = readdir(dir));) {
		const char *name = entry->d_name;
		if (name[0] == '.' || (!ends_with(name, ".yaml") && !ends_with(name, ".yml")))
			continue;
		if (ret->count == FILES_MAX)
			code = err_set(err, IBID_LIMIT, "%s holds more than %d contracts", contracts->dir,
			               FILES_MAX);
		else if (!names_add(ret, &contracts->arena, name))
			code = err_set(err, IBID_NOMEM, "out of memory");
	}
	closedir(dir);
	if (ret->count)
		qsort(ret->items, ret->count, sizeof *ret->items, by_text);
	return code;
}

static enum ibid_code open_dir(struct contracts *contracts, const char *dir, struct ibid_err *err)
{
	size_t size = strlen(dir);
	while (size > 1 && dir[size - 1] == '/')
		size--;
	contracts->problems.arena = &contracts->arena;
	contracts->dir = arena_strndup(&contracts->arena, dir, size);
	if (!contracts->dir)
		return err_set(err, IBID_NOMEM, "out of memory");
	contracts->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (contracts->dir_fd >= 0)
		return IBID_OK;
	switch (errno) {
	case ENOENT:
		return err_set(err, IBID_NOT_FOUND,
		               "%s does not exist: it must be a directory of contracts", dir);
	case ENOTDIR:
		return err_set(err, IBID_INVALID, "%s is a file: it must be a directory of contracts", dir);
	default:
		return err_write(err, code_of_errno(errno), "%s can't be read: %s", dir, strerror(errno));
	}
}

static struct node *load_defaults(struct contracts *contracts, const struct names *names)
{
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->items[i], defaults_name) != 0)
			continue;
		struct node *defaults = tree_of(contracts, defaults_name);
		if (defaults)
			contract_check_defaults(&contracts->problems, defaults);
		return defaults;
	}
	return NULL;
}

static int by_contract_name(const void *a, const void *b)
{
	return strcmp((*(struct contract *const *)a)->name, (*(struct contract *const *)b)->name);
}

static void list_sort(struct contract_list *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(struct contract *), by_contract_name);
}

static void load_files(struct contracts *contracts, struct names *names)
{
	const struct node *defaults = load_defaults(contracts, names);
	for (size_t i = 0; i < names->count; i++) {
		const char *name = names->items[i];
		size_t size = strlen(name);
		if (strcmp(name, defaults_name) == 0)
			continue;
		names->contracts++;
		if (strcmp(name + size - 5, ".yaml") != 0)
			problem_add(&contracts->problems, path_of(contracts, name), 0, NULL,
			            "it is not read under this name: rename it to %.*s.yaml",
			            (int)(strrchr(name, '.') - name), name);
		else
			load_contract(contracts, name, defaults);
	}
	list_sort(&contracts->commands);
	list_sort(&contracts->events);
	check_emits(contracts);
}

static enum ibid_code refuse_problems(const struct contracts *contracts, struct ibid_err *err)
{
	struct str text = STR_INIT(4096);
	problem_write(&text, &contracts->problems.items[0]);
	if (contracts->problems.count > 1)
		str_addf(&text, "\n(and %zu more)", contracts->problems.count - 1);
	err_set(err, IBID_CONTRACT, "%s", str_text(&text));
	str_release(&text);
	return IBID_CONTRACT;
}

enum ibid_code contracts_load(const char *dir, struct contracts **ret, struct ibid_err *err)
{
	struct names names = {0};
	struct contracts *contracts = calloc(1, sizeof *contracts);
	if (!contracts)
		return err_set(err, IBID_NOMEM, "out of memory");
	contracts->dir_fd = -1;
	contracts->emits_end = &contracts->emits;
	enum ibid_code code = open_dir(contracts, dir, err);
	if (code)
		goto out;
	code = list_dir(contracts, &names, err);
	if (code)
		goto out;
	contracts->commands.items = arena_array(&contracts->arena, names.count,
	                                        sizeof(struct contract *));
	contracts->events.items = arena_array(&contracts->arena, names.count,
	                                      sizeof(struct contract *));
	if (contracts->commands.items && contracts->events.items)
		load_files(contracts, &names);
	if (contracts->arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	else if (contracts->problems.count)
		code = refuse_problems(contracts, err);
	else if (!names.contracts)
		code = err_set(err, IBID_NOT_FOUND, "%s holds no contract: no file there ends in .yaml%s",
		               dir, names.count ? " besides defaults.yaml" : "");
out:
	if (code && code != IBID_CONTRACT)
		contracts_free(contracts);
	else
		*ret = contracts;
	return code;
}

void contracts_free(struct contracts *contracts)
{
	if (!contracts)
		return;
	if (contracts->dir_fd >= 0)
		close(contracts->dir_fd);
	arena_release(&contracts->arena);
	free(contracts);
}

/* ---- Looking -------------------------------------------------------------------------------- */

size_t contracts_problem_count(const struct contracts *contracts)
{
	return contracts->problems.count;
}

const struct contract_problem *contracts_problem(const struct contracts *contracts, size_t index)
{
	assert(index < contracts->problems.count);
	return &contracts->problems.items[index];
}

size_t contracts_count(const struct contracts *contracts)
{
	return contracts->commands.count;
}

const struct contract *contracts_at(const struct contracts *contracts, size_t index)
{
	assert(index < contracts->commands.count);
	return contracts->commands.items[index];
}

static const struct contract *list_find(const struct contract_list *list, const char *name)
{
	const struct contract key = {.name = name}, *wanted = &key;
	if (!list->count)
		return NULL;
	struct contract **found = bsearch(&wanted, list->items, list->count, sizeof(struct contract *),
	                                  by_contract_name);
	return found ? *found : NULL;
}

const struct contract *contracts_find(const struct contracts *contracts, const char *name)
{
	return list_find(&contracts->commands, name);
}

size_t contracts_event_count(const struct contracts *contracts)
{
	return contracts->events.count;
}

const struct contract *contracts_event_at(const struct contracts *contracts, size_t index)
{
	assert(index < contracts->events.count);
	return contracts->events.items[index];
}

const struct event_contract *contracts_event(const struct contracts *contracts, const char *type)
{
	const struct contract *found = list_find(&contracts->events, type);
	return found ? found->event : NULL;
}

const char *contracts_dir(const struct contracts *contracts)
{
	return contracts->dir;
}
