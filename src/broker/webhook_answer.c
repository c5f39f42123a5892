/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/webhook_answer.h"

#include "broker/ends.h"

#include <curl/curl.h>
#include <string.h>

static const struct meaning {
	int from, to;
	enum failure_class failure;
	bool of_receiver; /* and not of the record */
	const char *reason;
} meanings[] = {
    /* The first that fits. */
    {300, 399, FAILURE_PERMANENT, true, "WEBHOOK_REDIRECT"},
    {401, 401, FAILURE_SECURITY, true, "WEBHOOK_UNAUTHORIZED"},
    {403, 403, FAILURE_SECURITY, true, "WEBHOOK_UNAUTHORIZED"},
    {407, 407, FAILURE_SECURITY, true, "WEBHOOK_UNAUTHORIZED"},
    {408, 408, FAILURE_TRANSIENT, true, "WEBHOOK_ERROR"},
    {410, 410, FAILURE_PERMANENT, true, "WEBHOOK_GONE"},
    {413, 413, FAILURE_POISON, false, "RECORD_TOO_LARGE"},
    {425, 425, FAILURE_TRANSIENT, true, "WEBHOOK_ERROR"},
    {429, 429, FAILURE_CAPACITY, true, "WEBHOOK_BUSY"},
    {400, 499, FAILURE_PERMANENT, false, "WEBHOOK_REFUSED"},
    {502, 504, FAILURE_TRANSIENT, true, "WEBHOOK_ERROR"},
    {500, 599, FAILURE_TRANSIENT, false, "WEBHOOK_ERROR"},
    {0, 0, FAILURE_UNKNOWN, true, "WEBHOOK_NO_ANSWER"}, /* nothing that HTTP knows */
};

static const struct meaning *meaning_of(int status)
{
	const struct meaning *meaning = meanings;
	while (meaning->from && (status < meaning->from || status > meaning->to))
		meaning++;
	return meaning;
}

/* Seconds, however many digits. */
static int64_t read_seconds(const char *digits, size_t size)
{
	int64_t us = 0;
	for (size_t i = 0; i < size && us < WEBHOOK_RETRY_AFTER_US_MAX; i++)
		us = us * 10 + (int64_t)(digits[i] - '0') * 1000000;
	return us;
}

/* RFC 9110 10.2.3: seconds, or a date in one of three forms. What is neither says nothing. */
static int64_t retry_after_us(const struct webhook_answer *answer)
{
	const char *value;
	size_t size;
	char text[64];
	int64_t us;
	if (!call_header(answer->call, "Retry-After", &value, &size) || !size)
		return 0;
	if (strspn(value, "0123456789") >= size) {
		us = read_seconds(value, size);
	} else {
		if (size >= sizeof text)
			return 0;
		memcpy(text, value, size);
		text[size] = 0;
		time_t when = curl_getdate(text, NULL);
		int64_t now = answer->now_us / 1000000;
		if (when < 0 || when <= now)
			return 0;
		us = when - now < WEBHOOK_RETRY_AFTER_US_MAX / 1000000 ? (when - now) * INT64_C(1000000)
		                                                       : WEBHOOK_RETRY_AFTER_US_MAX;
	}
	return us < WEBHOOK_RETRY_AFTER_US_MAX ? us : WEBHOOK_RETRY_AFTER_US_MAX;
}

/* What is not about the record and does not pass by itself. */
static enum record_concern concern_of(const struct meaning *meaning, int status)
{
	if (status == 410)
		return CONCERNS_ALL;
	bool lasts = meaning->failure == FAILURE_SECURITY || meaning->failure == FAILURE_PERMANENT;
	return meaning->of_receiver && lasts ? CONCERNS_SENDER : CONCERNS_RECORD;
}

static bool conclude_answered(struct record *record, const struct webhook_answer *answer)
{
	int status = answer->call->status;
	if (status >= 200 && status <= 299) {
		record_ack(record, answer->place, -1, answer->now_us);
		return true;
	}
	const struct meaning *meaning = meaning_of(status);
	int64_t pause_us = 0;
	if (meaning->failure == FAILURE_TRANSIENT || meaning->failure == FAILURE_CAPACITY)
		pause_us = retry_after_us(answer);
	bool busy = status == 503 && pause_us > 0;
	record_fail(record, busy ? FAILURE_CAPACITY : meaning->failure,
	            busy ? "WEBHOOK_BUSY" : meaning->reason, "the receiver answered %d%s%s", status,
	            *answer->said ? ": " : "", answer->said);
	record->retry_after_us = pause_us;
	record->concern = concern_of(meaning, status);
	return !meaning->of_receiver && !pause_us;
}

bool webhook_conclude(struct record *record, const struct webhook_answer *answer)
{
	const struct call *call = answer->call;
	const char *why = call->detail[0] ? call->detail : call->why;
	record_put(record, answer->place);
	if (call->end == CALL_ANSWERED || answer->headed)
		return conclude_answered(record, answer);
	if (call->end == CALL_SILENT)
		record_fail(record, FAILURE_UNKNOWN, "WEBHOOK_NO_ANSWER",
		            "it was sent, and no answer came: %.150s", why);
	else if (call->off_limits)
		record_fail(record, FAILURE_SECURITY, "WEBHOOK_ADDRESS",
		            "the url leads to an address that is not public, and nothing was sent; "
		            "`allow_private: yes` would allow it");
	else if (call->distrusted)
		record_fail(record, FAILURE_SECURITY, "WEBHOOK_TLS",
		            "there is no TLS with the receiver, and nothing was sent: %.150s", why);
	else
		record_fail(record, FAILURE_TRANSIENT, "WEBHOOK_UNREACHABLE",
		            "the receiver can't be reached, and nothing was sent: %.150s", why);
	if (record->failure == FAILURE_SECURITY)
		record->concern = CONCERNS_ALL;
	return false;
}
