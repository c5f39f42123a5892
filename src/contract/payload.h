/* SPDX-License-Identifier: Apache-2.0 */
/* payload.h -- what a contract makes of one payload: its key, its fingerprint, its typed fields.
 * Pure functions; everything they return lives in the caller's arena. */
#ifndef CONTRACT_PAYLOAD_H
#define CONTRACT_PAYLOAD_H

#include "base/json.h"
#include "base/str.h"
#include "contract/contract.h"

enum {
	KEY_BYTES_MAX = 255,
	NAME_BYTES_MAX = 128, /* tenant, client, actor, resource, operation */
	FINGERPRINT_SCHEME = 1,
	NFC_MARKS_MAX = 128, /* sorting the marks of one letter takes their number squared */
};

/* The sender and the resource: the parts that scope and context may name. "" when not given. */
struct sender {
	const char *tenant, *client, *actor, *resource;
};

/* Check a given key: 1..KEY_BYTES_MAX bytes of valid UTF-8 without control characters, not blank at
 * either end. The error says what is wrong. */
IBID_CHECK enum ibid_code key_check(const char *key, struct ibid_err *err);

/* A tenant, client, actor or resource: 1..NAME_BYTES_MAX bytes, same rules. `what` names it. */
IBID_CHECK enum ibid_code name_check(const char *what, const char *name, struct ibid_err *err);

/* The command's key: the given one (KEY_HEADER), or the declared fields' values (KEY_FIELDS; a key
 * given as well must then be equal, NULL is the normal case). A missing or null field, one that is
 * an array or object, or nothing but empty texts is IBID_INVALID. Notation does not matter: 1.10
 * and 1.1 are one key, and so are the notations of one instant (where the field or `same_payload`
 * says that it is one) and, with `nfc`, of one text. */
IBID_CHECK enum ibid_code key_of(struct arena *arena, const struct contract *contract,
                                 const char *tenant, const char *given, struct json *payload,
                                 const char **ret, struct ibid_err *err);

/* The scope part of the identity: "" for none, else the declared parts as a canonical JSON object.
 * A missing declared part is IBID_INVALID, and the error names it. */
IBID_CHECK enum ibid_code scope_of(struct arena *arena, const struct contract *contract,
                                   const struct sender *sender, const char **ret,
                                   struct ibid_err *err);

/* SHA-256 of the canonical form of
 *   {"context":{...},"operation":O,"payload":P,"scheme":1,"tenant":T,"version":V}
 * where P is the payload as `same_payload` sees it (only, ignore, defaults, instants, nfc,
 * unordered: in this order) and context holds the declared parts. A missing declared part, and two
 * members whose names are the same in NFC, are IBID_INVALID. The payload is not changed. */
IBID_CHECK enum ibid_code fingerprint_of(struct arena *arena, const struct contract *contract,
                                         const struct sender *sender, struct json *payload,
                                         struct sha256 *ret, struct ibid_err *err);

/* The bytes that fingerprint_of hashes, for `ibid fingerprint --explain`. */
IBID_CHECK enum ibid_code fingerprint_text(struct arena *arena, const struct contract *contract,
                                           const struct sender *sender, struct json *payload,
                                           const char **ret, size_t *ret_size,
                                           struct ibid_err *err);

/* The contract's `answer.location` filled in, each value percent-encoded; "" when a value is
 * missing or it would be longer than 2048 bytes. The same for every payload that means the same. */
const char *location_of(struct arena *arena, const struct contract *contract, struct json *payload,
                        const char *of_resource, const char *of_command);

/* ---- Shared by the above -------------------------------------------------------------------- */

/* Append the `parts` (SCOPE_ bits) of the sender as a canonical JSON object, each checked as a
 * name. `place` is the member of the contract that declares them, for the error: "key.scope". */
IBID_CHECK enum ibid_code sender_add(struct str *out, const struct contract *contract,
                                     unsigned parts, const char *place, const struct sender *sender,
                                     struct ibid_err *err);

/* Put a text (valid UTF-8, NUL bytes allowed) into Unicode NFC. `*text` and `*size` stay as they
 * are when it is in NFC already. More than NFC_MARKS_MAX combining marks in a row are IBID_INVALID.
 */
IBID_CHECK enum ibid_code text_nfc(struct arena *arena, const char **text, size_t *size,
                                   struct ibid_err *err);

/* IBID_LIMIT when the arena's cap is what stopped a failed allocation, else IBID_NOMEM. */
enum ibid_code payload_no_memory(const struct arena *arena, struct ibid_err *err);

/* ---- Fields --------------------------------------------------------------------------------- */

/* One declared field's value. */
struct param {
	const struct contract_field *field;
	const char *text; /* NULL: absent or null. Exact text: integers and decimals in plain notation,
	                     "true"/"false", YYYY-MM-DD, RFC 3339 UTC, text as is, json canonical */
	size_t size;
};

struct params {
	struct param *items; /* one per contract field, in the contract's order */
	size_t count;
};

/* Check the payload against the declared fields. IBID_OK, or IBID_REJECTED with `*ret_why` saying
 * which members are wrong, each with its pointer, at most ten: "/amount must be above 0; ...". The
 * text never repeats the value of a field whose class is not `store`. */
IBID_CHECK enum ibid_code fields_check(struct arena *arena, const struct contract *contract,
                                       struct json *payload, struct params *ret,
                                       const char **ret_why, struct ibid_err *err);

/* One problem of such a text: the member, and what is wrong with it. */
struct field_problem {
	const char *pointer, *rule; /* not terminated; the whole payload has an empty pointer */
	size_t pointer_size, rule_size;
};

/* Parse the text of fields_check: the problem that begins at `*at`, which moves to the next one or
 * to the end. False: the text has another format. Pointers are written for people: names of
 * undeclared members are cut and escaped. */
bool fields_problem_next(const char **at, struct field_problem *ret);

#endif
