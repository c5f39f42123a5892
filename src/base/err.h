/* SPDX-License-Identifier: Apache-2.0 */
/* err.h -- filling in errors, which say what the caller may do next. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <ibid.h>
#include <stdarg.h>

/* Fill `err` (may be NULL) and return its code, so that a failure is one line:
 *     return err_set(err, IBID_INVALID, "key is empty");
 * `next` follows from the code. A macro, so that compilers and analysers see the returned code. It
 * evaluates the code twice: if the code is an expression with side effects, call err_write. */
#define err_set(err, code, ...) err_same(err_write((err), (code), __VA_ARGS__), (code))
enum ibid_code err_write(struct ibid_err *err, enum ibid_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline enum ibid_code err_same(enum ibid_code written, enum ibid_code code)
{
	(void)written;
	return code;
}
enum ibid_code err_setv(struct ibid_err *err, enum ibid_code code, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Put "prefix: " before the text. Returns the code. */
enum ibid_code err_prefix(struct ibid_err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a caller may do after this code when nothing more is known. */
enum ibid_next err_next_of(enum ibid_code code);

/* The caller's error, or `spare` instead of NULL; emptied. Public functions call it, so that the
 * functions below them need not check for NULL. */
static inline struct ibid_err *err_or(struct ibid_err *err, struct ibid_err *spare)
{
	struct ibid_err *used = err ? err : spare;
	*used = (struct ibid_err){0};
	return used;
}

#endif
