/* SPDX-License-Identifier: Apache-2.0 */
/* header.h -- valid names and values of HTTP header fields. */
#ifndef NET_HEADER_H
#define NET_HEADER_H

#include <stdbool.h>

/* A token of RFC 9110, 5.6.2: no blank, separator, control character or byte beyond ASCII. */
bool header_name_ok(const char *name);
bool header_name_byte_ok(char byte);

/* One line: no control characters but tabs. */
bool header_value_ok(const char *value);

#endif
