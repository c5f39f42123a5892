/* SPDX-License-Identifier: Apache-2.0 */
/* err.h -- errors that say what the caller may do next. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <ibid.h>
#include <stdarg.h>

/* Fill `err` (may be NULL) and return its code, so that a failure is one line:
 *     return err_set(err, IBID_INVALID, "key is empty");
 * `next` follows from the code; err_next overrides it. */
enum ibid_code err_set(struct ibid_err *err, enum ibid_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum ibid_code err_setv(struct ibid_err *err, enum ibid_code code, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Put "prefix: " before the text. Returns the code. */
enum ibid_code err_prefix(struct ibid_err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a caller may do after this code when nothing more is known. */
enum ibid_next err_next_of(enum ibid_code code);

#endif
