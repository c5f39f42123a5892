/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes, in both dialects: no crash, and what was split keeps its promises. */
#include "store/script.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct param_spec specs[] = {{"a", PARAM_TEXT}, {"amount", PARAM_DECIMAL}};

static void check(const struct script_statements *statements)
{
	if (statements->count == 0)
		abort();
	for (size_t i = 0; i < statements->count; i++) {
		const struct script_statement *item = &statements->items[i];
		if (item->line < 1 || !*item->sql || item->param_count > 2)
			abort();
		for (size_t k = 0; k < item->param_count; k++)
			if (item->params[k] >= 2)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum script_dialect dialects[] = {DIALECT_SQLITE, DIALECT_POSTGRES};
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t d = 0; d < 2; d++) {
		struct arena arena = {0};
		struct ibid_err err;
		struct script_statements statements;
		if (script_split(&arena, dialects[d], "f", text, specs, 2, &statements, &err) == IBID_OK)
			check(&statements);
		arena_release(&arena);
	}
	free(text);
	return 0;
}
