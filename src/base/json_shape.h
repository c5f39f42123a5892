/* SPDX-License-Identifier: Apache-2.0 */
/* json_shape.h -- is a text JSON?
 *
 * One pass that builds nothing: for texts that were checked completely when they were stored, and
 * are checked again before they are sent. Repeated names and numbers of any length are accepted;
 * exponents have nine digits at most, as in the other readers. */
#ifndef BASE_JSON_SHAPE_H
#define BASE_JSON_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

enum { JSON_SHAPE_DEPTH_MAX = 1024 }; /* deeper values are not checked, and count as JSON */

bool json_shape_ok(const char *bytes, size_t size);

#endif
