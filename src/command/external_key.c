/* SPDX-License-Identifier: Apache-2.0 */
#include "command/external_key.h"

#include "base/str.h"

#include <string.h>

/* The name space of keys for partners: never changes, because they keep them. */
static const struct uuid space = {{0x6f, 0x0b, 0x8a, 0x5e, 0x3c, 0x91, 0x4d, 0x27, 0xb2, 0x4e, 0x19,
                                   0xd8, 0x70, 0xc5, 0xa3, 0x3b}};

const char *external_key(struct arena *arena, const struct identity *identity)
{
	const char *const parts[] = {identity->tenant, identity->operation, identity->scope,
	                             identity->key};
	struct str name = STR_INIT(1 << 20);
	char *key = NULL;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		str_addc(&name, i ? ',' : '[');
		str_add_json(&name, parts[i], strlen(parts[i]));
	}
	str_addc(&name, ']');
	if (!name.failed)
		key = arena_alloc(arena, UUID_TEXT_SIZE);
	if (key)
		uuid_write(uuid_v5(space, name.data, name.size), key);
	str_release(&name);
	return key;
}

const char *external_key_of_row(struct arena *arena, const struct command_row *row)
{
	return row->lease_token ? external_key(arena, &row->identity) : NULL;
}

enum ibid_code external_key_of_exception(struct store *store, struct arena *arena,
                                         const struct exception_row *row, const char **ret,
                                         struct ibid_err *err)
{
	struct command_row command;
	struct uuid id;
	*ret = NULL;
	if (strcmp(row->subject_type, "command") != 0 || !uuid_read(row->subject_id, &id))
		return IBID_OK;
	enum ibid_code code = store_get_command(store, arena, row->tenant, &id, NULL, &command, err);
	if (!code)
		*ret = external_key_of_row(arena, &command);
	return code == IBID_NOT_FOUND ? IBID_OK : code;
}
