/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c -- A03 under arbitrary bytes: what is read has a canonical form, that form is read
 * again, and its canonical form is itself. */
#include "base/canon.h"
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Strictly ascending names, sizes that count the children, terminated texts. */
static void check(const struct json *value)
{
	size_t children = 0;
	if (value->type == JSON_STRING || value->type == JSON_NUMBER) {
		must(value->text[value->size] == '\0');
		return;
	}
	for (const struct json *child = value->child; child; child = child->next, children++) {
		const struct json *next = child->next;
		must((child->name != NULL) == (value->type == JSON_OBJECT));
		must(!child->name || child->name[child->name_size] == '\0');
		must(!child->name || !next ||
		     canon_name_cmp(child->name, child->name_size, next->name, next->name_size) < 0);
		check(child);
	}
	must(children == value->size);
}

static void round_trip(struct arena *arena, const struct json *value)
{
	struct str once = STR_INIT(64 << 20), twice = STR_INIT(64 << 20);
	struct json *again;
	struct ibid_err err;
	canon_write(&once, value);
	must(!once.failed);
	must(json_read(arena, once.data, once.size, 64 << 20, &again, &err) == IBID_OK);
	check(again);
	canon_write(&twice, again);
	must(!twice.failed && once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
	if (value->type == JSON_NUMBER)
		must(canon_number_cmp(value->text, value->size, once.data, once.size) == 0);
	str_release(&once);
	str_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct arena arena = {0};
	struct json *value;
	struct ibid_err err;
	enum ibid_code code = json_read(&arena, (const char *)bytes, size, 0, &value, &err);
	if (code == IBID_OK)
		round_trip(&arena, value);
	else
		must(err.code == code && strstr(err.text, " at line "));
	arena_release(&arena);
	return 0;
}
