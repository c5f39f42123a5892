/* SPDX-License-Identifier: Apache-2.0 */
/* instant.c -- RFC 3339 in, RFC 3339 in UTC out, with no floating point and no libc time zone.
 *
 * Dates are counted in days of the proleptic Gregorian calendar. Years begin in March there, so
 * that the leap day is the last day of its year and months need no table. */
#include "base/instant.h"

#include <string.h>

enum { DAY_MINUTES = 24 * 60 };

struct civil {
	int64_t year;
	int month, day;
};

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Days since 1970-01-01. 400 years have 146097 days; 719468 lie between 0000-03-01 and 1970. */
static int64_t days_of(struct civil date)
{
	int64_t year = date.year - (date.month <= 2);
	int64_t era = floor_div(year, 400), of_era = year - era * 400;
	int64_t month = (date.month + 9) % 12;
	int64_t of_year = (153 * month + 2) / 5 + date.day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct civil civil_of(int64_t days)
{
	days += 719468;
	int64_t era = floor_div(days, 146097), of_era = days - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;
	int64_t day = of_year - (153 * month + 2) / 5 + 1;
	return (struct civil){
	    .year = year + era * 400 + (month >= 10),
	    .month = (int)(month < 10 ? month + 3 : month - 9),
	    .day = (int)day,
	};
}

/* ---- Reading -------------------------------------------------------------------------------- */

struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *cursor, const char *any_of)
{
	if (cursor->at == cursor->end || !*cursor->at || !strchr(any_of, *cursor->at))
		return false;
	cursor->at++;
	return true;
}

/* Exactly `digits` digits, worth low..high. */
static bool take_number(struct cursor *cursor, int digits, int low, int high, int *ret)
{
	int value = 0;
	for (; digits > 0; digits--, cursor->at++) {
		if (cursor->at == cursor->end || *cursor->at < '0' || *cursor->at > '9')
			return false;
		value = value * 10 + (*cursor->at - '0');
	}
	*ret = value;
	return value >= low && value <= high;
}

static bool take_date(struct cursor *cursor, struct civil *ret)
{
	int year;
	if (!take_number(cursor, 4, 0, 9999, &year) || !take(cursor, "-") ||
	    !take_number(cursor, 2, 1, 12, &ret->month) || !take(cursor, "-") ||
	    !take_number(cursor, 2, 1, 31, &ret->day))
		return false;
	ret->year = year;
	/* A day that its month lacks comes back as a day of the next month. */
	return civil_of(days_of(*ret)).day == ret->day;
}

struct moment {
	int64_t minutes; /* since 1970, UTC */
	int second;      /* 0 .. 60 */
	const char *fraction;
	size_t fraction_size; /* without trailing zeros */
};

static bool take_fraction(struct cursor *cursor, struct moment *moment)
{
	moment->fraction = cursor->at;
	moment->fraction_size = 0;
	if (!take(cursor, "."))
		return true;
	const char *first = cursor->at, *last = first;
	while (take(cursor, "0123456789"))
		if (cursor->at[-1] != '0')
			last = cursor->at;
	moment->fraction = first;
	moment->fraction_size = (size_t)(last - first);
	return cursor->at > first;
}

static bool take_zone(struct cursor *cursor, int *ret_minutes)
{
	int hours, minutes;
	*ret_minutes = 0;
	if (take(cursor, "Zz"))
		return true;
	bool west = take(cursor, "-");
	if ((!west && !take(cursor, "+")) || !take_number(cursor, 2, 0, 23, &hours) ||
	    !take(cursor, ":") || !take_number(cursor, 2, 0, 59, &minutes))
		return false;
	*ret_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
	return true;
}

static bool read_moment(const char *text, size_t size, struct moment *ret)
{
	struct cursor cursor = {text, text + size};
	struct civil date;
	int hour, minute, zone;
	if (!take_date(&cursor, &date) || !take(&cursor, "Tt") ||
	    !take_number(&cursor, 2, 0, 23, &hour) || !take(&cursor, ":") ||
	    !take_number(&cursor, 2, 0, 59, &minute) || !take(&cursor, ":") ||
	    !take_number(&cursor, 2, 0, 60, &ret->second) || !take_fraction(&cursor, ret) ||
	    !take_zone(&cursor, &zone) || cursor.at != cursor.end)
		return false;
	ret->minutes = days_of(date) * DAY_MINUTES + hour * 60 + minute - zone;
	/* In UTC it may have left the years that four digits can say. */
	int64_t year = civil_of(floor_div(ret->minutes, DAY_MINUTES)).year;
	return year >= 0 && year <= 9999;
}

bool instant_read(const char *text, size_t size, int64_t *ret_us)
{
	struct moment moment;
	int64_t fraction = 0;
	if (!read_moment(text, size, &moment))
		return false;
	for (size_t i = 0; i < 6; i++)
		fraction = fraction * 10 + (i < moment.fraction_size ? moment.fraction[i] - '0' : 0);
	*ret_us = (moment.minutes * 60 + moment.second) * 1000000 + fraction;
	return true;
}

bool date_ok(const char *text, size_t size)
{
	struct cursor cursor = {text, text + size};
	struct civil date;
	return take_date(&cursor, &date) && cursor.at == cursor.end;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static char *put_number(char *at, int64_t value, int digits)
{
	char reversed[20];
	int size = 0;
	for (; value > 0 || size < digits; value /= 10)
		reversed[size++] = (char)('0' + value % 10);
	while (size > 0)
		*at++ = reversed[--size];
	return at;
}

/* "2026-11-15T09:00:" */
static char *put_minutes(char *at, int64_t minutes)
{
	int64_t days = floor_div(minutes, DAY_MINUTES), of_day = minutes - days * DAY_MINUTES;
	struct civil date = civil_of(days);
	if (date.year < 0)
		*at++ = '-';
	at = put_number(at, date.year < 0 ? -date.year : date.year, 4);
	*at++ = '-';
	at = put_number(at, date.month, 2);
	*at++ = '-';
	at = put_number(at, date.day, 2);
	*at++ = 'T';
	at = put_number(at, of_day / 60, 2);
	*at++ = ':';
	at = put_number(at, of_day % 60, 2);
	*at++ = ':';
	return at;
}

bool instant_canonical(const char *text, size_t size, struct str *out)
{
	struct moment moment;
	char whole[INSTANT_TEXT_SIZE];
	if (!read_moment(text, size, &moment))
		return false;
	char *end = put_number(put_minutes(whole, moment.minutes), moment.second, 2);
	str_add(out, whole, (size_t)(end - whole));
	if (moment.fraction_size) {
		str_addc(out, '.');
		str_add(out, moment.fraction, moment.fraction_size);
	}
	str_addc(out, 'Z');
	return true;
}

void instant_write(int64_t us, char ret[INSTANT_TEXT_SIZE])
{
	int64_t minutes = floor_div(us, 60000000), of_minute = us % 60000000;
	if (of_minute < 0)
		of_minute += 60000000;
	char *at = put_number(put_minutes(ret, minutes), of_minute / 1000000, 2);
	*at++ = '.';
	at = put_number(at, of_minute % 1000000, 6);
	*at++ = 'Z';
	*at = '\0';
}

int64_t instant_clamp(int64_t us)
{
	static const int64_t first_us = INT64_C(-62135596800000000);
	static const int64_t last_us = INT64_C(253402300799999999);
	return us < first_us ? first_us : us > last_us ? last_us : us;
}

/* ---- Durations ------------------------------------------------------------------------------ */

bool duration_read(const char *text, int64_t *ret_us)
{
	static const struct {
		const char *unit;
		int64_t us;
	} units[] = {
	    {"ms", 1000},
	    {"s", 1000000},
	    {"m", 60000000},
	    {"h", INT64_C(3600000000)},
	    {"d", INT64_C(86400000000)},
	    {"w", INT64_C(604800000000)},
	    {"y", INT64_C(31536000000000)},
	};
	int64_t value = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *at - '0', &value))
			return false;
	for (size_t i = 0; value > 0 && i < sizeof units / sizeof *units; i++) {
		if (strcmp(at, units[i].unit) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].us, &value))
			return false;
		*ret_us = value;
		return true;
	}
	return false;
}

/* Half a unit is rounded up. */
static int64_t rounded(int64_t us, int64_t unit_us)
{
	return us / unit_us + (us % unit_us >= unit_us - us % unit_us);
}

static char *put_unit(char *at, int64_t count, const char *unit)
{
	at = put_number(at, count, 1);
	*at++ = ' ';
	return stpcpy(at, unit);
}

void duration_write(int64_t us, char ret[INSTANT_TEXT_SIZE])
{
	enum { TENTH_US = 100000, SECOND_US = 1000000, UNITS = 4, TWO_UNITS_BELOW = 10 };
	static const struct {
		int64_t us;
		const char *name;
	} units[UNITS] = {
	    {INT64_C(86400) * SECOND_US, "d"},
	    {INT64_C(3600) * SECOND_US, "h"},
	    {INT64_C(60) * SECOND_US, "min"},
	    {SECOND_US, "s"},
	};
	if (us < 0)
		us = 0;
	for (int i = 0; i + 1 < UNITS; i++) {
		int64_t next = rounded(us, units[i + 1].us), next_of_one = units[i].us / units[i + 1].us;
		if (next < next_of_one)
			continue;
		if (next >= TWO_UNITS_BELOW * next_of_one) {
			put_unit(ret, rounded(us, units[i].us), units[i].name);
			return;
		}
		char *end = put_unit(ret, next / next_of_one, units[i].name);
		if (next % next_of_one) {
			*end++ = ' ';
			put_unit(end, next % next_of_one, units[i + 1].name);
		}
		return;
	}
	int64_t tenths = rounded(us, TENTH_US);
	if (tenths > 0 && tenths < 10)
		strcpy(put_number(stpcpy(ret, "0."), tenths, 1), " s");
	else
		put_unit(ret, rounded(us, SECOND_US), "s");
}
