/* SPDX-License-Identifier: Apache-2.0 */
/* json_shape.h -- is it JSON at all?
 *
 * Looks at a text once and keeps nothing: for what was checked when it was written, and is looked
 * at again where it leaves. Names that repeat and numbers of any length are JSON, too; exponents
 * have nine digits at most, as everywhere here. */
#ifndef BASE_JSON_SHAPE_H
#define BASE_JSON_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

enum { JSON_SHAPE_DEPTH_MAX = 1024 }; /* what is deeper is not looked at, and counts as JSON */

bool json_shape_ok(const char *bytes, size_t size);

#endif
