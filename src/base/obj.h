/* SPDX-License-Identifier: Apache-2.0 */
/* obj.h -- JSON, written member by member.
 *
 * The functions add commas. A NULL text is null; bytes that are not UTF-8 become U+FFFD. */
#ifndef BASE_OBJ_H
#define BASE_OBJ_H

#include "base/id.h"
#include "base/str.h"

#include <stdint.h>

void obj_begin(struct str *out, const char *name, char bracket); /* name NULL: no member */
void obj_end(struct str *out, char bracket);
void obj_text(struct str *out, const char *name, const char *text);
void obj_text_if(struct str *out, const char *name, const char *text); /* NULL: no member */
void obj_id(struct str *out, const char *name, struct uuid id);
void obj_int(struct str *out, const char *name, int64_t number);
void obj_bool(struct str *out, const char *name, bool value);
/* NULL or "": null. Line breaks become blanks. */
void obj_raw(struct str *out, const char *name, const char *json);

/* "openedAt" of "opened_at". */
enum { OBJ_NAME_SIZE = 64 };
const char *obj_camel(const char *name, char ret[OBJ_NAME_SIZE]);

/* Names joined by commas, as an array. NULL: none. */
void names_json(struct str *out, const char *name, const char *names);

#endif
