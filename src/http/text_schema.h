/* SPDX-License-Identifier: Apache-2.0 */
/* text_schema.h -- what the texts in requests must be like, as JSON Schema.
 *
 * The server counts bytes, and JSON Schema counts characters: a text beyond ASCII is described as
 * shorter than it may be. Headers are described in ASCII, which is all that HTTP promises to carry.
 */
#ifndef HTTP_TEXT_SCHEMA_H
#define HTTP_TEXT_SCHEMA_H

#define TEXT_SCHEMA_OF(pattern) "{\"type\":\"string\",\"pattern\":\"" pattern "\"}"

/* A text of any length that PostgreSQL can keep. */
#define TEXT_PATTERN "^[^\\\\u0000]*$"
#define TEXT_SCHEMA  TEXT_SCHEMA_OF(TEXT_PATTERN)
#define TEXT_GIVEN   TEXT_SCHEMA_OF("^[^\\\\u0000]+$")

/* What uuid_read takes. */
#define TEXT_ID   "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
#define ID_SCHEMA TEXT_SCHEMA_OF("^" TEXT_ID "$")

/* What name_check takes: 128 bytes at most, no control characters, no blank at either end. */
#define TEXT_BLANKS                                                                                \
	"\\\\u00a0\\\\u1680\\\\u2000-\\\\u200a\\\\u2028\\\\u2029\\\\u202f\\\\u205f\\\\u3000"
#define TEXT_MARK   "[^\\\\u0000-\\\\u001f\\\\u007f-\\\\u009f]"
#define TEXT_END    "[^\\\\u0000-\\\\u0020\\\\u007f-\\\\u009f" TEXT_BLANKS "]"
#define TEXT_NAME   "(?:[!-~](?:[ -~]{0,126}[!-~])?|" TEXT_END "(?:" TEXT_MARK "{0,30}" TEXT_END ")?)"
#define NAME_SCHEMA TEXT_SCHEMA_OF("^" TEXT_NAME "$")
#define NAME_IF_ANY TEXT_SCHEMA_OF("^" TEXT_NAME "?$")

/* The types and ids of resources: 128 and 255 bytes. */
#define SHORT_SCHEMA(most)                                                                         \
	"{\"type\":\"string\",\"maxLength\":" #most ",\"pattern\":\"" TEXT_PATTERN "\"}"

/* What act_check_reason takes: not all blanks. */
#define REASON_SCHEMA                                                                              \
	"{\"type\":\"string\",\"maxLength\":2000,"                                                     \
	"\"pattern\":\"^[ \\\\t\\\\r\\\\n]*[^\\\\u0000 \\\\t\\\\r\\\\n][^\\\\u0000]*$\"}"

/* Likewise in a header, where blanks around the value are none of it. */
#define HEADER_SCHEMA(value) TEXT_SCHEMA_OF("^[ \\\\t]*" value "[ \\\\t]*$")
#define HEADER_NAME_SCHEMA   HEADER_SCHEMA("(?:[!-~](?:[ -~]{0,126}[!-~])?)?")

/* Bare, or a string of RFC 8941: 255 bytes at most, not counting what escapes them. */
#define KEY_IN_QUOTES "\\\"(?:" KEY_END "(?:(?: |" KEY_END "){0,253}" KEY_END ")?)\\\""
#define KEY_END       "(?:[!#-\\\\[\\\\]-~]|\\\\\\\\[\\\"\\\\\\\\])"
#define KEY_SCHEMA    HEADER_SCHEMA("(?:[!#-~](?:[ -~]{0,253}[!-~])?|" KEY_IN_QUOTES ")")

#endif
