/* SPDX-License-Identifier: Apache-2.0 */
/* event.c -- the questions that the contract of an event answers. */
#include "contract/event.h"

#include "base/str.h"
#include "contract/build.h"

#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum {
	TOPIC_BYTES_MAX = 249, /* Kafka's */
	AGGREGATE_BYTES_MAX = 128,
	DESTINATION_BYTES_MAX = 63,
	MAX_BYTES_MAX = 1 << 20, /* no event is longer */
};

/* ---- Members with a shape of their own ------------------------------------------------------ */

static void read_type(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	if (text && !event_type_ok(text))
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: an event type is a letter, then letters, digits, `.`, `_`, `-`, at "
		           "most %d",
		           path, text, EVENT_CHARS_MAX);
	else if (text)
		*(const char **)target = text;
}

static void read_topic(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return;
	if (!text_matches(text, letters, letters, TOPIC_BYTES_MAX) || strcmp(text, ".") == 0 ||
	    strcmp(text, "..") == 0)
		PROBLEM_AT(
		    reading->problems, node,
		    "%s is `%s`: a topic is 1 to %d letters, digits, `.`, `_` and `-`, and not `.` or "
		    "`..`",
		    path, text, TOPIC_BYTES_MAX);
	else
		*(const char **)target = text;
}

static void read_aggregate(struct reading *reading, const struct member *member, const char *path,
                           const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	if (text && strlen(text) > AGGREGATE_BYTES_MAX)
		PROBLEM_AT(reading->problems, node, "%s has more than %d bytes", path, AGGREGATE_BYTES_MAX);
	else if (text)
		*(const char **)target = text;
}

static void read_partition_key(struct reading *reading, const struct member *member,
                               const char *path, const struct node *node, void *target)
{
	struct event_rule *rule = target;
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return;
	if (strcmp(text, "aggregate_id") == 0) {
		rule->partition = PARTITION_AGGREGATE_ID;
	} else if (strcmp(text, "tenant") == 0) {
		rule->partition = PARTITION_TENANT;
	} else if (text[0] != '/') {
		PROBLEM_AT(
		    reading->problems, node,
		    "%s is `%s`: it must be aggregate_id, tenant, or a pointer into the payload such "
		    "as /account",
		    path, text);
	} else if (pointer_check(reading, path, node, false)) {
		rule->partition = PARTITION_PAYLOAD;
		rule->partition_pointer = text;
	}
}

static void read_required(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct texts texts = {0};
	bool good = member_texts(reading, member, path, node, &texts);
	for (const struct node *child = good ? node->child : NULL; child; child = child->next)
		good = pointer_check(reading, path, child, false) && good;
	if (good)
		*(struct texts *)target = texts;
}

static void read_destinations(struct reading *reading, const struct member *member,
                              const char *path, const struct node *node, void *target)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	struct texts texts = {0};
	if (!member_texts(reading, member, path, node, &texts))
		return;
	for (const struct node *child = node->child; child; child = child->next)
		if (!text_matches(child->text, letters, letters, DESTINATION_BYTES_MAX))
			PROBLEM_AT(reading->problems, child,
			           "%s: `%s` is not the name of a destination: a-z, 0-9 and -, at most %d",
			           path, child->text, DESTINATION_BYTES_MAX);
	*(struct texts *)target = texts;
}

static const struct member_type type_event_type = {"an event type such as PaymentCreated",
                                                   read_type};
static const struct member_type type_topic = {"a topic such as payments.payment.events.v1",
                                              read_topic};
static const struct member_type type_aggregate = {"a type of aggregate such as payment",
                                                  read_aggregate};
static const struct member_type type_partition_key = {
    "aggregate_id | tenant | a pointer such as /account", read_partition_key};
static const struct member_type type_required = {
    "a list of pointers such as [/amount, /currency], may be empty", read_required};
static const struct member_type type_destinations = {
    "a list of destinations such as [kafka-main], may be empty", read_destinations};

/* ---- Questions ------------------------------------------------------------------------------ */

#define SEVERITY_NAME(symbol, name) name,
static const char *const severity_names[] = {EXCEPTION_SEVERITIES(SEVERITY_NAME) NULL};
#undef SEVERITY_NAME

#define AT(member) offsetof(struct event_contract, member)
/* clang-format off */
static const struct member event_members[] = {
	{"event", &type_event_type, AT(rule.type), MEMBER_REQUIRED | MEMBER_OWN,
	 "What is the event called?"},
	{"version", &type_int, AT(rule.version), MEMBER_REQUIRED | MEMBER_OWN,
	 "Which version of this contract is it?",
	 "from 1 to 1000000, a new one for every change of meaning", .min = 1, .max = 1000000},
	{"owner", &type_name, AT(owner), MEMBER_REQUIRED,
	 "Which team is the source of truth for the fact that it tells?"},
	{"topic", &type_topic, AT(rule.topic), MEMBER_REQUIRED,
	 "Under which topic is it published?"},
	{"aggregate", &type_aggregate, AT(rule.aggregate), MEMBER_REQUIRED,
	 "What kind of thing does it happen to?", "as emit is told"},
	{"partition_key", &type_partition_key, AT(rule), MEMBER_REQUIRED,
	 "Which events stay in one order at the broker?",
	 "a pointer leads to a text or an integer of the payload"},
	{"required", &type_required, AT(required), MEMBER_REQUIRED | MEMBER_OWN,
	 "What must its payload hold, that consumers may rely on?"},
	{"max_bytes", &type_size, AT(rule.max_bytes), MEMBER_REQUIRED,
	 "How long may its payload be?", "as it is stored; up to 1048576", .min = 1,
	 .max = MAX_BYTES_MAX},
	{"order", &type_choice, AT(order), MEMBER_REQUIRED,
	 "In which order is it delivered?",
	 .choices = (const char *const[]){"aggregate-version", NULL}},
	{"deliver_to", &type_destinations, AT(deliver_to), MEMBER_REQUIRED,
	 "To which destinations is it delivered?", "none: it is kept, and delivered nowhere"},
	{"on_parked.owner", &type_name, AT(on_parked.owner), MEMBER_REQUIRED,
	 "Who looks at one that can't be delivered?"},
	{"on_parked.severity", &type_choice, AT(on_parked.severity), MEMBER_REQUIRED,
	 "How bad is it meanwhile?", .choices = severity_names},
	{"on_parked.sla", &type_duration, AT(on_parked.sla_us), MEMBER_REQUIRED,
	 "Within what time must it be looked at?"},
	{"on_parked.skip_needs_approval", &type_flag, AT(on_parked.skip_needs_approval),
	 MEMBER_REQUIRED,
	 "Must a second person agree before its aggregate goes on without it?"},
};
/* clang-format on */
#undef AT

const struct form event_form = {"event", "an event", event_members, COUNT(event_members)};

/* ---- From a document ------------------------------------------------------------------------ */

void *event_begin(struct reading *reading, struct contract *contract)
{
	struct event_contract *event = arena_alloc(reading->arena, sizeof *event);
	contract->event = event;
	return event;
}

/* What is stored with each event beside its columns: 002_event.sql makes the same. */
static const char *make_headers(struct arena *arena, const struct event_contract *event)
{
	struct str text = STR_INIT(64 << 10);
	str_addf(&text, "{\"event_version\":\"%d\"", event->rule.version);
	for (size_t i = 0; i < event->deliver_to.count; i++)
		str_addf(&text, "%s%s", i ? "," : ",\"deliver_to\":\"", event->deliver_to.items[i]);
	str_adds(&text, event->deliver_to.count ? "\"}" : "}");
	const char *headers = text.failed ? NULL : arena_strndup(arena, text.data, text.size);
	arena->failed |= text.failed;
	str_release(&text);
	return headers;
}

/* The contract has the members that all kinds share; the rule has all that writing needs. */
void event_finish(struct reading *reading, struct contract *contract)
{
	struct event_contract *event = contract->event;
	struct event_rule *rule = &event->rule;
	rule->required = event->required.items;
	rule->required_count = event->required.count;
	rule->headers = make_headers(reading->arena, event);
	contract->name = rule->type;
	contract->version = rule->version;
	contract->owner = event->owner;
}
