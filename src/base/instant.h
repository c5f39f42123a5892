/* SPDX-License-Identifier: Apache-2.0 */
/* instant.h -- points in time, dates and durations as text. */
#ifndef BASE_INSTANT_H
#define BASE_INSTANT_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { INSTANT_TEXT_SIZE = 32 };

/* RFC 3339 date-time with a zone ("2026-11-15T10:00:00+01:00", "...Z", any number of fraction
 * digits): appends the same instant in UTC with 'Z', fraction digits kept without trailing zeros
 * and never rounded ("2026-11-15T09:00:00Z"). A leap second (60) is kept if it is at the end of a
 * UTC minute. False, and nothing appended, for any other text. */
bool instant_canonical(const char *text, size_t size, struct str *out);

/* Microseconds since 1970 as RFC 3339 UTC with exactly six fraction digits. */
void instant_write(int64_t us, char ret[INSTANT_TEXT_SIZE]);

/* The nearest instant in the years 1 to 9999. Used for times that other programs may have written:
 * the result can be printed, and differences of two results do not overflow. */
int64_t instant_clamp(int64_t us);

/* RFC 3339 with a zone, to microseconds (further digits cut). */
bool instant_read(const char *text, size_t size, int64_t *ret_us);

/* A real calendar date, YYYY-MM-DD. */
bool date_ok(const char *text, size_t size);

/* "250ms", "2s", "10m", "4h", "30d", "2w", "10y" (365 days): to microseconds. Whole positive
 * numbers with one unit; false otherwise or when it would overflow. */
bool duration_read(const char *text, int64_t *ret_us);

/* An age or a remaining time for people: "0.4 s", "3 s", "1 min 30 s", "4 h", "3 d 4 h", "12 d".
 * Rounded to the last unit that is shown; two units are shown while the first is below ten.
 * Negative: "0 s". */
void duration_write(int64_t us, char ret[INSTANT_TEXT_SIZE]);

#endif
