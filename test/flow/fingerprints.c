/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprints.c -- what the library makes of many documents, for those who compute the same.
 *
 *   fingerprints CONTRACTS <requests >answers
 *
 * A request is a line {"contract","tenant","client","actor","resource","given","document"} of
 * texts; `given` may be null. Its answer is a line with an array: canonical form, text of the
 * fingerprint, fingerprint, scope, key; each a text that begins with '+', or with '-' and says why
 * there is none. */
#include "base/canon.h"
#include "contract/payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct str *out, enum ibid_code code, const struct ibid_err *err, const char *text,
                size_t size)
{
	struct str answer = STR_INIT(ARENA_CAP_DEFAULT);
	str_addc(&answer, code ? '-' : '+');
	if (code)
		str_adds(&answer, err->text);
	else
		str_add(&answer, text, size);
	str_addc(out, out->size ? ',' : '[');
	str_add_json(out, str_text(&answer), answer.size);
	str_release(&answer);
}

static void add_text(struct str *out, enum ibid_code code, const struct ibid_err *err,
                     const char *text)
{
	add(out, code, err, text, code ? 0 : strlen(text));
}

static const char *text_of(const struct json *request, const char *name)
{
	const struct json *member = json_member(request, name);
	return member && member->type == JSON_STRING ? member->text : NULL;
}

static void add_canonical(struct str *out, const struct json *payload)
{
	struct str form = STR_INIT(ARENA_CAP_DEFAULT);
	canon_write(&form, payload);
	add(out, IBID_OK, NULL, str_text(&form), form.size);
	str_release(&form);
}

static void add_fingerprint(struct str *out, struct arena *arena, const struct contract *contract,
                            const struct sender *sender, struct json *payload)
{
	struct ibid_err err;
	const char *text = NULL;
	size_t size = 0;
	struct sha256 hash;
	char hex[SHA256_TEXT_SIZE];
	enum ibid_code code = fingerprint_text(arena, contract, sender, payload, &text, &size, &err);
	add(out, code, &err, text, size);
	code = fingerprint_of(arena, contract, sender, payload, &hash, &err);
	if (!code)
		sha256_write(&hash, hex);
	add_text(out, code, &err, hex);
}

static void answer(struct str *out, struct arena *arena, const struct contracts *contracts,
                   const struct json *request)
{
	struct ibid_err err;
	struct json *payload = NULL;
	const char *scope = NULL, *key = NULL, *document = text_of(request, "document");
	const struct contract *contract = contracts_find(contracts, text_of(request, "contract"));
	const struct sender sender = {text_of(request, "tenant"), text_of(request, "client"),
	                              text_of(request, "actor"), text_of(request, "resource")};
	enum ibid_code code = json_read(arena, document, strlen(document), 0, &payload, &err);
	if (code || !contract) {
		for (int i = 0; i < 5; i++)
			add_text(out, IBID_INVALID, &err, NULL);
		return;
	}
	add_canonical(out, payload);
	add_fingerprint(out, arena, contract, &sender, payload);
	code = scope_of(arena, contract, &sender, &scope, &err);
	add_text(out, code, &err, scope);
	code = key_of(arena, contract, sender.tenant, text_of(request, "given"), payload, &key, &err);
	add_text(out, code, &err, key);
}

static int serve(const struct contracts *contracts)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t size;
	while ((size = getline(&line, &room, stdin)) > 0) {
		struct arena arena = {0};
		struct ibid_err err;
		struct json *request = NULL;
		struct str out = STR_INIT(ARENA_CAP_DEFAULT);
		if (json_read(&arena, line, (size_t)size, ARENA_CAP_DEFAULT, &request, &err)) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		answer(&out, &arena, contracts, request);
		printf("%s]\n", str_text(&out));
		str_release(&out);
		arena_release(&arena);
	}
	free(line);
	return 0;
}

int main(int argc, char **argv)
{
	struct contracts *contracts = NULL;
	struct ibid_err err;
	if (argc != 2 || contracts_load(argv[1], &contracts, &err)) {
		fprintf(stderr, "fingerprints: %s\n", argc == 2 ? err.text : "which contracts?");
		return 1;
	}
	int code = serve(contracts);
	contracts_free(contracts);
	return code;
}
