/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.c -- the contracts' answers, as the tables that reviewers ask for.
 *
 * Answers come from the contract's own text, and the sentences about failures follow from the
 * answers: no text is specific to an operation. */
#include "contract/matrix.h"

#include "base/json.h"
#include "contract/event.h"
#include "contract/sheet.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { CELL_BYTES_MAX = 64 << 10, ARENA_BYTES_MAX = 64 << 20 };

/* ---- Answers -------------------------------------------------------------------------------- */

static void add_answer(struct str *out, const struct json *value)
{
	if (value->type == JSON_STRING)
		str_add(out, value->text, value->size);
	for (const struct json *child = value->child; child; child = child->next) {
		str_adds(out, child == value->child ? "" : ", ");
		bool block = child->type == JSON_OBJECT;
		if (child->name)
			str_addf(out, block ? "%s (" : "%s: ", child->name);
		add_answer(out, child);
		str_adds(out, block ? ")" : "");
	}
}

/* What the contract answers at a dotted path, lists joined by commas; `none` when it is silent. */
static const char *answer_at(struct arena *arena, const struct json *answers, const char *path,
                             const char *none)
{
	const struct json *value = answers;
	while (value && *path) {
		char name[64];
		size_t size = strcspn(path, ".");
		memcpy(name, path, size);
		name[size] = '\0';
		value = json_member(value, name);
		path += size + (path[size] == '.');
	}
	if (!value || (value->type != JSON_STRING && !value->child))
		return none;
	struct str text = STR_INIT(CELL_BYTES_MAX);
	add_answer(&text, value);
	const char *copy = arena_strndup(arena, str_text(&text), text.size);
	str_release(&text);
	return copy;
}

/* Was this answer, or a part of it, taken from defaults.yaml? */
static bool inherited(const struct contract *contract, const char *path)
{
	size_t size = strlen(path);
	for (size_t i = 0; i < contract->inherited.count; i++) {
		const char *item = contract->inherited.items[i];
		if (strncmp(item, path, size) == 0 && (item[size] == '\0' || item[size] == '.'))
			return true;
	}
	return false;
}

static const char *joined(struct arena *arena, const struct texts *texts, const char *none)
{
	struct str text = STR_INIT(CELL_BYTES_MAX);
	for (size_t i = 0; i < texts->count; i++)
		str_addf(&text, "%s%s", i ? ", " : "", texts->items[i]);
	const char *copy = texts->count ? arena_strndup(arena, str_text(&text), text.size) : none;
	str_release(&text);
	return copy;
}

/* ---- Idempotency matrix --------------------------------------------------------------------- */

/* X(id, title, path in the contract, what silence means) */
#define ANSWERS(X)                                                                                 \
	X("operation", "Operation", "command", "")                                                     \
	X("version", "Version", "version", "")                                                         \
	X("fact", "Business fact", "fact", "")                                                         \
	X("owner", "Owner", "owner", "")                                                               \
	X("strategy", "Strategy", "strategy", "")                                                      \
	X("key_from", "Key from", "key.from", "")                                                      \
	X("key_generated_by", "Key made by", "key.generated_by", "")                                   \
	X("key_scope", "Scope besides tenant and operation", "key.scope", "none")                      \
	X("key_retain", "Key kept for", "key.retain", "")                                              \
	X("after_expiry", "After expiry", "key.after_expiry", "")                                      \
	X("completed", "Duplicate of a completed one", "duplicates.completed", "")                     \
	X("rejected", "Duplicate of a rejected one", "duplicates.rejected", "")                        \
	X("rejected_other_payload", "Rejected, other payload", "duplicates.rejected_other_payload",    \
	  "")                                                                                          \
	X("in_progress", "Duplicate while running", "duplicates.in_progress", "")                      \
	X("other_payload", "Same key, other payload", "duplicates.other_payload", "")                  \
	X("by_source", "Duplicates by source", "duplicates.by_source", "")                             \
	X("unique", "Business uniqueness", "unique", "none declared")                                  \
	X("payload", "Payload kept", "payload", "omit")                                                \
	X("answer_stored", "Answer stored", "answer.store", "")                                        \
	X("evidence", "Evidence of duplicates", "duplicates.evidence", "")                             \
	X("audit_retain", "Audit kept for", "audit.retain", "")                                        \
	X("covers", "Side effects covered", "covers", "")

#define ANSWER_COLUMN(id, title, path, none) {id, title},
static const struct column answer_columns[] = {ANSWERS(ANSWER_COLUMN)};
#undef ANSWER_COLUMN

#define ANSWER_SOURCE(id, title, path, none) {path, none},
static const struct {
	const char *path, *none;
} answer_sources[] = {ANSWERS(ANSWER_SOURCE)};
#undef ANSWER_SOURCE

/* What the sections are written from. */
struct view {
	struct arena *arena;
	const struct contract *contract;
	const struct json *answers;
};

static void add_idempotency(struct sheet *sheet, const struct view *view)
{
	struct cell cells[COUNT(answer_sources)];
	for (size_t i = 0; i < COUNT(answer_sources); i++)
		cells[i] = (struct cell){
		    answer_at(view->arena, view->answers, answer_sources[i].path, answer_sources[i].none),
		    inherited(view->contract, answer_sources[i].path)};
	sheet_add(sheet, cells);
}

/* ---- Events --------------------------------------------------------------------------------- */

/* As ANSWERS. */
#define EVENT_ANSWERS(X)                                                                           \
	X("event", "Event", "event", "")                                                               \
	X("version", "Version", "version", "")                                                         \
	X("owner", "Owner", "owner", "")                                                               \
	X("topic", "Topic", "topic", "")                                                               \
	X("aggregate", "Aggregate", "aggregate", "")                                                   \
	X("partition_key", "Partition key", "partition_key", "")                                       \
	X("required", "Required in the payload", "required", "nothing")                                \
	X("max_bytes", "Bytes at most", "max_bytes", "")                                               \
	X("order", "Order", "order", "")                                                               \
	X("deliver_to", "Delivered to", "deliver_to", "nowhere: it is kept")

#define ANSWER_COLUMN(id, title, path, none) {id, title},
static const struct column event_columns[] = {EVENT_ANSWERS(ANSWER_COLUMN)};
#undef ANSWER_COLUMN

#define ANSWER_SOURCE(id, title, path, none) {path, none},
static const struct {
	const char *path, *none;
} event_sources[] = {EVENT_ANSWERS(ANSWER_SOURCE)};
#undef ANSWER_SOURCE

static void add_event(struct sheet *sheet, const struct view *view)
{
	struct cell cells[COUNT(event_sources)];
	for (size_t i = 0; i < COUNT(event_sources); i++)
		cells[i] = (struct cell){
		    answer_at(view->arena, view->answers, event_sources[i].path, event_sources[i].none),
		    inherited(view->contract, event_sources[i].path)};
	sheet_add(sheet, cells);
}

/* ---- Strategies ----------------------------------------------------------------------------- */

static const struct column strategy_columns[] = {
    {"operation", "Operation"}, {"strategy", "Strategy"}, {"enforced_by", "How it is enforced"},
    {"looks_at", "With what"},  {"row", "Row held"},
};

/* "already: a.sql, state: b.sql": the members that belong to the strategy. */
static const char *strategy_members(const struct view *view)
{
	static const char *const paths[] = {"already", "state", "guard", "because", "unique", "staged"};
	struct str text = STR_INIT(CELL_BYTES_MAX);
	for (size_t i = 0; i < COUNT(paths); i++) {
		const char *answer = answer_at(view->arena, view->answers, paths[i], "");
		if (answer && *answer)
			str_addf(&text, "%s%s: %s", text.size ? ", " : "", paths[i], answer);
	}
	const char *copy = text.size ? arena_strndup(view->arena, str_text(&text), text.size)
	                             : "the key";
	str_release(&text);
	return copy;
}

static void add_strategy(struct sheet *sheet, const struct view *view)
{
	const struct contract *contract = view->contract;
	const struct strategy_needs *needs = contract_strategy_needs(contract->strategy);
	sheet_add(
	    sheet,
	    (struct cell[]){
	        {contract->name, false},
	        {contract_strategy_name(contract->strategy), inherited(contract, "strategy")},
	        {needs->proof, false},
	        {strategy_members(view), false},
	        {needs->serialize_by ? joined(view->arena, &contract->serialize_by, "none") : "none",
	         needs->serialize_by && inherited(contract, "serialize_by")}});
}

/* ---- Retry policy --------------------------------------------------------------------------- */

static const struct column retry_columns[] = {{"operation", "Operation"},
                                              {"failure", "Failure"},
                                              {"policy", "Policy"},
                                              {"next", "What the caller does next"}};

/* The contract decides about these. */
static const struct {
	enum refusal_class class;
	const char *path, *failure, *final, *retry;
} declared_failures[] = {
    {REFUSAL_VALIDATION, "failures.validation", "invalid payload",
     "corrects the payload and sends it as a new intent, with a new key",
     "corrects the payload and sends it with the same key, at once; waiting does not help"},
    {REFUSAL_BUSINESS, "failures.business", "business rejection",
     "resolves the reason and sends a new intent, with a new key",
     "resolves the reason and may send the same key again"},
    {REFUSAL_SERVER, "failures.server", "server failure before any effect",
     "leaves it to the owner: the failure is this key's answer",
     "sends the same key again after a pause, each pause longer, with jitter"},
};

/* These hold for every contract. */
static const struct {
	const char *failure, *policy, *next;
} given_failures[] = {
    {"deadlock or serialization failure", "retried inside, bounded; never final",
     "nothing; if it is still refused as busy, sends the same key later"},
    {"store busy or unreachable", "nothing was done", "sends the same key later"},
    {"commit whose outcome is unknown", "looked up before anything is repeated",
     "asks again with the same key"},
    {"same key, other payload", "conflict; never retried",
     "finds out why the key was used twice; a new intent needs a new key"},
};

static void add_retry(struct sheet *sheet, const struct view *view)
{
	const char *name = view->contract->name;
	for (size_t i = 0; i < COUNT(declared_failures); i++) {
		bool final = view->contract->final[declared_failures[i].class];
		sheet_add(sheet,
		          (struct cell[]){
		              {name, false},
		              {declared_failures[i].failure, false},
		              {final ? "final" : "retry with the same key",
		               inherited(view->contract, declared_failures[i].path)},
		              {final ? declared_failures[i].final : declared_failures[i].retry, false}});
	}
	for (size_t i = 0; i < COUNT(given_failures); i++)
		sheet_add(sheet, (struct cell[]){{name, false},
		                                 {given_failures[i].failure, false},
		                                 {given_failures[i].policy, false},
		                                 {given_failures[i].next, false}});
}

/* ---- Exception queues ----------------------------------------------------------------------- */

static const struct column queue_columns[] = {{"operation", "Operation"},
                                              {"queue", "Queue"},
                                              {"owner", "Owner"},
                                              {"lands", "What lands there"},
                                              {"actions", "Allowed next action"}};

static void add_queue(struct sheet *sheet, const struct view *view, const char *queue,
                      const char *lands, const char *actions)
{
	sheet_add(sheet, (struct cell[]){{view->contract->name, false},
	                                 {queue, false},
	                                 {view->contract->owner, inherited(view->contract, "owner")},
	                                 {lands, false},
	                                 {actions, false}});
}

static void add_queues(struct sheet *sheet, const struct view *view)
{
	const struct contract *contract = view->contract;
	add_queue(sheet, view, "business", "an outcome that stays unknown",
	          arena_printf(view->arena,
	                       "look at it, ask again with the same key, compare with %s; never run it "
	                       "under a new key",
	                       contract->reconciled_by));
	if (contract->final[REFUSAL_BUSINESS])
		add_queue(sheet, view, "business", "a business rejection that its sender disputes",
		          "resolve the reason; send a new intent with a new key");
	add_queue(sheet, view, "dead-letter", "a server failure that does not go away",
	          contract->final[REFUSAL_SERVER] ? "repair; send a new intent with a new key"
	                                          : "repair; send the same key again");
	add_queue(sheet, view, "data-quality", "a key that comes with another payload",
	          "find the sender that reuses keys; the first outcome stands");
	add_queue(sheet, view, "reconciliation",
	          arena_printf(view->arena, "a break found by %s", contract->reconciled_by),
	          arena_printf(view->arena, "correct it with %s; nothing is deleted",
	                       contract->corrected_by));
}

static void add_event_queue(struct sheet *sheet, const struct view *view)
{
	const struct event_parked *parked = &view->contract->event->on_parked;
	sheet_add(
	    sheet,
	    (struct cell[]){
	        {view->contract->name, false},
	        {"dead-letter", false},
	        {parked->owner, inherited(view->contract, "on_parked.owner")},
	        {arena_printf(view->arena,
	                      "an event that can't be delivered, severity %s, to be looked at within "
	                      "%s; later ones of its aggregate wait",
	                      exception_severity_name(parked->severity),
	                      contract_duration(view->arena, parked->sla_us)),
	         inherited(view->contract, "on_parked")},
	        {parked->skip_needs_approval
	             ? "repair and release it; skip it, with a second person's approval"
	             : "repair and release it; skip it",
	         false}});
}

/* ---- Failure modes -------------------------------------------------------------------------- */

static const struct column failure_columns[] = {{"operation", "Operation"},
                                                {"failure", "What goes wrong"},
                                                {"behaviour", "What happens under this contract"}};

static const char *after_completion(const struct view *view)
{
	static const char *const kept[] = {
	    [ANSWER_FULL] = "nothing runs; the first answer is replayed, byte for byte",
	    [ANSWER_REFERENCE] =
	        "nothing runs; the first status and the resource it named are replayed",
	    [ANSWER_STATUS] = "nothing runs; the first status is replayed without a body",
	    [ANSWER_NONE] = "nothing runs; that it is done is replayed, the answer was not kept"};
	return kept[view->contract->answer];
}

static const char *while_running(const struct view *view)
{
	switch (view->contract->duplicates.in_progress) {
	case PROGRESS_ACCEPTED: return "nothing runs twice; accepted, with the operation's address";
	case PROGRESS_WAIT:
		return arena_printf(
		    view->arena,
		    "nothing runs twice; waits up to %s for the first answer, then in progress",
		    contract_duration(view->arena, view->contract->duplicates.wait_us));
	default: return "nothing runs twice; answered at once as in progress, with when to ask again";
	}
}

static const char *other_payload(const struct view *view)
{
	return view->contract->duplicates.evidence == EVIDENCE_EACH
	           ? "conflict; nothing runs; each attempt is kept as evidence"
	           : "conflict; nothing runs; attempts are counted as evidence";
}

static const char *after_rejection(const struct view *view)
{
	return view->contract->duplicates.rejected == REJECTED_REPLAY
	           ? "the first rejection is replayed"
	           : "it is evaluated again: the reason may be gone";
}

static const char *after_rejection_other(const struct view *view)
{
	return view->contract->duplicates.rejected_other_payload == REJECTED_OTHER_CONFLICT
	           ? "conflict; nothing runs"
	           : "the new payload is evaluated: the rejected one had no effect";
}

/* How the outcome of a call to the service is found, and until when. */
static const char *service_asked(const struct view *view)
{
	const struct contract_inquiry *inquiry = &view->contract->upstream.inquiry;
	return arena_printf(view->arena,
	                    "the service is asked at %s whether it was done, and after %s a person is",
	                    inquiry->url, contract_duration(view->arena, inquiry->give_up_us));
}

static const char *who_looks(const struct view *view)
{
	static const char *const looks[] = {
	    [RECOVER_HUMAN] = "it becomes unknown, and a person finds out whether it was done",
	    [RECOVER_INQUIRY] = "the partner is asked whether it was done",
	    [RECOVER_QUERY] = "a script looks at business state whether it was done",
	};
	return view->contract->upstream.inquiry.url ? service_asked(view)
	                                            : looks[view->contract->staged.recover];
}

static const char *worker_silent(const struct view *view)
{
	return arena_printf(view->arena,
	                    "after a lease of %s it is taken over, and the worker is fenced; %s; "
	                    "nothing is run again before that",
	                    contract_duration(view->arena, view->contract->staged.lease_us),
	                    who_looks(view));
}

static const char *crash_before(const struct view *view)
{
	if (view->contract->staged.lease_us)
		return worker_silent(view);
	return "nothing has happened: change, events, answer and audit entry were one transaction; the "
	       "same key runs it";
}

static const char *crash_after(const struct view *view)
{
	(void)view;
	return "it has happened once; the same key gets the stored outcome";
}

static const char *commit_lost(const struct view *view)
{
	(void)view;
	return "unknown, never guessed: the store is asked on a new connection; if it can't be read, "
	       "the "
	       "caller asks again with the same key";
}

static const char *without_unique(const struct contract *contract)
{
	if (contract->already)
		return "linked to what is there: `already` finds it under any key";
	if (contract->strategy == STRATEGY_COMMUTATIVE)
		return "done again, which changes nothing";
	if (contract->strategy == STRATEGY_NONE)
		return "done again, and nobody minds";
	if (contract->upstream.given && contract->key.from == KEY_HEADER)
		return "a second effect, unless the service refuses it: its tables are not looked at";
	return contract->key.from == KEY_FIELDS
	           ? "can't be: the same fact has the same key"
	           : "a second effect: no `unique` is declared, only reconciliation finds it";
}

static const char *new_key(const struct view *view)
{
	const struct contract *contract = view->contract;
	struct str text = STR_INIT(CELL_BYTES_MAX);
	for (size_t i = 0; i < contract->unique_count; i++)
		str_addf(&text, "%s%s: %s", i ? "; " : "", contract->uniques[i].name,
		         contract->uniques[i].on_duplicate == UNIQUE_LINK
		             ? "linked to the existing document"
		             : "rejected with the existing document's id");
	if (!contract->unique_count)
		str_adds(&text, without_unique(contract));
	const char *copy = arena_strndup(view->arena, str_text(&text), text.size);
	str_release(&text);
	return copy;
}

static const char *failed(const struct view *view, enum refusal_class class)
{
	return view->contract->final[class] ? "no effect; the answer is kept and is final for its key"
	                                    : "no effect; the same key may be claimed again";
}

static const char *invalid(const struct view *view)
{
	return view->contract->final[REFUSAL_VALIDATION]
	           ? failed(view, REFUSAL_VALIDATION)
	           : "no effect; the key is bound to no payload: the corrected one takes it, and the "
	             "refused one, kept as evidence, is a conflict from then on";
}

static const char *rejected(const struct view *view)
{
	return failed(view, REFUSAL_BUSINESS);
}

static const char *server_failed(const struct view *view)
{
	return failed(view, REFUSAL_SERVER);
}

static const char *after_expiry(const struct view *view)
{
	const struct contract_key *key = &view->contract->key;
	const char *retain = contract_duration(view->arena, key->retain_us);
	return key->after_expiry == EXPIRY_REFUSE
	           ? arena_printf(view->arena, "after %s it is refused as expired", retain)
	           : arena_printf(view->arena,
	                          "after %s it runs again; `unique` prevents a second effect", retain);
}

static const struct {
	const char *failure;
	const char *(*behaviour)(const struct view *view);
} failure_modes[] = {
    {"duplicate after completion", after_completion},
    {"duplicate while the first one runs", while_running},
    {"same key, other payload", other_payload},
    {"duplicate after a rejection", after_rejection},
    {"other payload after a rejection", after_rejection_other},
    {"crash before the commit", crash_before},
    {"crash after the commit, before the answer", crash_after},
    {"the commit's answer is lost", commit_lost},
    {"same fact under a new key", new_key},
    {"invalid payload", invalid},
    {"business rejection", rejected},
    {"server failure", server_failed},
    {"duplicate after expiry", after_expiry},
};

static void add_failures(struct sheet *sheet, const struct view *view)
{
	for (size_t i = 0; i < COUNT(failure_modes); i++)
		sheet_add(sheet, (struct cell[]){{view->contract->name, false},
		                                 {failure_modes[i].failure, false},
		                                 {failure_modes[i].behaviour(view), false}});
}

/* ---- Answers of the service ------------------------------------------------------------------ */

static const struct column service_columns[] = {{"operation", "Operation"},
                                                {"answer", "What the service does"},
                                                {"kept", "What is kept"},
                                                {"retry", "What the same key gets"}};

static const char tries_again[] = "it is passed on again";

/* The row of an answer that is not a success and is kept. */
static const char *kept_rejection(const struct view *view)
{
	if (!view->contract->final[REFUSAL_BUSINESS])
		return "nothing: failures.business is retry";
	return "a rejection, with the answer";
}

static const char *rejection_retried(const struct view *view)
{
	return view->contract->final[REFUSAL_BUSINESS] ? after_rejection(view) : tries_again;
}

static const char *without_answer(const struct view *view, const char *error)
{
	bool accepted = view->contract->upstream.unknown == UPSTREAM_UNKNOWN_ACCEPTED;
	return arena_printf(view->arena, "%s: it is unknown; nothing is passed on; %s",
	                    accepted ? "202" : error, who_looks(view));
}

static void add_service_row(struct sheet *sheet, const struct view *view, const char *answer,
                            const char *kept, const char *retry)
{
	sheet_add(sheet,
	          (struct cell[]){
	              {view->contract->name, false}, {answer, false}, {kept, false}, {retry, false}});
}

static void add_service_errors(struct sheet *sheet, const struct view *view)
{
	switch (view->contract->upstream.error) {
	case UPSTREAM_ERROR_KEEP:
		add_service_row(sheet, view, "answers another 5xx", "an outcome, with the answer",
		                "nothing runs; the first answer is replayed");
		break;
	case UPSTREAM_ERROR_RETRY:
		add_service_row(sheet, view, "answers another 5xx",
		                "nothing: it is taken as a promise that nothing was done", tries_again);
		break;
	case UPSTREAM_ERROR_UNKNOWN:
		add_service_row(sheet, view, "answers another 5xx", "unknown", without_answer(view, "502"));
		break;
	}
}

/* What a caller gets that the contract does not protect, or that does not wait for the end. */
static void add_service_callers(struct sheet *sheet, const struct view *view)
{
	const struct contract_upstream *upstream = &view->contract->upstream;
	const char *wait = contract_duration(view->arena, upstream->wait_us);
	bool passes = upstream->without_key == UPSTREAM_WITHOUT_KEY_PASS;
	if (!upstream->wait_us)
		add_service_row(sheet, view, "is called", "in progress",
		                "202 at once, and where to look for the outcome");
	else if (upstream->wait_us < upstream->deadline_us)
		add_service_row(sheet, view, arena_printf(view->arena, "takes longer than %s", wait),
		                "in progress", "202, and where to look for the outcome");
	if (view->contract->key.from == KEY_HEADER)
		add_service_row(sheet, view,
		                passes ? "gets a request without a key"
		                       : "gets no request without a key: it is refused",
		                "nothing",
		                passes ? "there is none: a repetition is passed on without protection"
		                       : "there is none: 400 before anything is passed on");
}

static void add_service(struct sheet *sheet, const struct view *view)
{
	const struct contract_upstream *upstream = &view->contract->upstream;
	if (!upstream->given)
		return;
	const char *deadline = contract_duration(view->arena, upstream->deadline_us);
	bool keeps = upstream->conflict == UPSTREAM_CONFLICT_KEEP;
	add_service_row(sheet, view, "answers 2xx or 3xx",
	                arena_printf(view->arena, "completed; headers: Content-Type%s%s",
	                             upstream->headers.count ? ", " : "",
	                             joined(view->arena, &upstream->headers, "")),
	                after_completion(view));
	add_service_row(sheet, view, "answers 401, 403, 407, 408, 425, 429 or 503", "nothing",
	                tries_again);
	add_service_row(sheet, view, "answers 409",
	                keeps ? kept_rejection(view)
	                      : "nothing: it is taken as a promise that nothing was done",
	                keeps ? rejection_retried(view) : tries_again);
	add_service_row(sheet, view, "answers another 4xx", kept_rejection(view),
	                rejection_retried(view));
	add_service_errors(sheet, view);
	add_service_row(sheet, view, "can't be reached: nothing was sent", "nothing", tries_again);
	add_service_row(
	    sheet, view,
	    arena_printf(view->arena, "gives no answer within %s, or a broken one", deadline),
	    "unknown", without_answer(view, "504, or 502 for a broken one"));
	add_service_callers(sheet, view);
}

/* ---- Reconciliation plan -------------------------------------------------------------------- */

static const struct column reconciliation_columns[] = {{"operation", "Operation"},
                                                       {"fact", "Business fact"},
                                                       {"covers", "Effects to compare"},
                                                       {"reconciled_by", "Reconciled by"},
                                                       {"corrected_by", "Corrected by"}};

static void add_reconciliation(struct sheet *sheet, const struct view *view)
{
	const struct contract *contract = view->contract;
	sheet_add(
	    sheet,
	    (struct cell[]){{contract->name, false},
	                    {contract->fact, false},
	                    {joined(view->arena, &contract->covers, ""), inherited(contract, "covers")},
	                    {contract->reconciled_by, inherited(contract, "reconciled_by")},
	                    {contract->corrected_by, inherited(contract, "corrected_by")}});
}

/* ---- Runbook outline ------------------------------------------------------------------------ */

static const struct column runbook_columns[] = {
    {"operation", "Operation"}, {"situation", "Situation"}, {"run", "Run"}, {"then", "Then"}};

static void add_step(struct sheet *sheet, const struct view *view, const char *situation,
                     const char *run, const char *then)
{
	sheet_add(sheet,
	          (struct cell[]){
	              {view->contract->name, false}, {situation, false}, {run, false}, {then, false}});
}

static void add_runbook(struct sheet *sheet, const struct view *view)
{
	const struct contract *contract = view->contract;
	add_step(sheet, view, "a caller asks what became of a command", "ibid command show",
	         "tell the outcome; the same key gives the same answer");
	add_step(sheet, view, "commands stay unknown or in progress",
	         contract->staged.lease_us ? "ibid command recover, ibid exception list"
	                                   : "ibid exception list, ibid command show",
	         arena_printf(view->arena,
	                      "send the same key again; if it stays unknown, %s compares with %s first",
	                      contract->owner, contract->reconciled_by));
	add_step(sheet, view, "conflicts: one key, several payloads",
	         "ibid command list, ibid command show",
	         arena_printf(view->arena, "ask %s why the key was reused; the first outcome stands",
	                      contract->key.generated_by));
	add_step(sheet, view, "a wrong or double effect is found", "ibid command show",
	         arena_printf(view->arena, "correct it with %s; do not edit or delete rows",
	                      contract->corrected_by));
	add_step(sheet, view, "failures rise, or the store was moved or restored", "ibid doctor",
	         "repair what it names; then let callers send the same keys again");
	add_step(sheet, view, "before this contract changes", "ibid contract check",
	         "raise its version; keys in flight are compared under the old one");
}

/* ---- Sequence diagrams ---------------------------------------------------------------------- */

static const struct column diagram_columns[] = {{"operation", "Operation"}, {"mermaid", "Diagram"}};

static void write_diagram(struct str *out, const struct view *view)
{
	const struct contract *contract = view->contract;
	const char *scope = answer_at(view->arena, view->answers, "key.scope", NULL);
	bool upstream = contract->upstream.given;
	str_addf(out,
	         "sequenceDiagram\n"
	         "    participant client\n"
	         "    participant ibid\n"
	         "    participant store\n"
	         "%s"
	         "    client->>ibid: %s, key from %s\n"
	         "    ibid->>store: begin, claim tenant, operation, %s%skey\n",
	         upstream ? "    participant service\n" : "", contract->name,
	         contract->key.from == KEY_HEADER ? "header" : "fields", scope ? scope : "",
	         scope ? ", " : "");
	str_adds(out, "    alt the key is new\n");
	if (contract->staged.lease_us)
		str_addf(out,
		         "        ibid->>store: in progress, under a lease of %s, commit\n"
		         "%s"
		         "        ibid->>store: begin, compare the lease's token\n",
		         contract_duration(view->arena, contract->staged.lease_us),
		         upstream ? "        ibid->>service: the request as it came\n"
		                    "        service->>service: business change\n"
		                    "        service-->>ibid: answer\n"
		                  : "        ibid->>ibid: work outside any transaction\n");
	str_adds(out, upstream ? "" : "        ibid->>store: business change\n");
	for (size_t i = 0; i < contract->emits.count; i++)
		str_addf(out, "        ibid->>store: event %s to the outbox\n", contract->emits.items[i]);
	str_adds(out, "        ibid->>store: answer and audit entry, commit\n"
	              "        store-->>ibid: durable\n"
	              "        ibid-->>client: executed\n");
	if (contract_looks(contract) && contract->already)
		str_adds(out, "    else what is asked for holds already\n"
		              "        ibid->>store: audit entry, commit\n"
		              "        ibid-->>client: linked to what is there\n");
	if (contract->unique_count)
		str_adds(out, "    else the fact exists under another key\n"
		              "        ibid->>store: roll back, find the document\n"
		              "        ibid-->>client: linked or rejected with its id\n");
	str_adds(out, "    else same key, same payload\n"
	              "        ibid-->>client: first outcome, replayed\n"
	              "    else same key, other payload\n"
	              "        ibid-->>client: conflict\n"
	              "    else the first one is still running\n"
	              "        ibid-->>client: in progress\n"
	              "    end\n");
}

static void add_diagram(struct sheet *sheet, const struct view *view)
{
	struct str text = STR_INIT(CELL_BYTES_MAX);
	write_diagram(&text, view);
	sheet_add(sheet,
	          (struct cell[]){{view->contract->name, false},
	                          {arena_strndup(view->arena, str_text(&text), text.size), false}});
	str_release(&text);
}

/* A diagram is not a cell: it is fenced for Markdown and indented for people. */
static void write_diagrams(struct str *out, const struct sheet *sheet, enum matrix_format format)
{
	if (format == MATRIX_TEXT)
		sheet_write_title(out, sheet);
	else
		str_addf(out, "## %s\n\n", sheet->title);
	for (const struct sheet_row *row = sheet->first; row; row = row->next) {
		if (format == MATRIX_MARKDOWN) {
			str_addf(out, "### %s\n\n```mermaid\n%s```\n\n", row->cells[0].text,
			         row->cells[1].text);
			continue;
		}
		str_addf(out, "%s\n", row->cells[0].text);
		for (const char *line = row->cells[1].text; line && *line;) {
			size_t size = strcspn(line, "\n");
			str_adds(out, "  ");
			str_add(out, line, size);
			str_addc(out, '\n');
			line += size + (line[size] == '\n');
		}
		str_addc(out, '\n');
	}
}

/* ---- All of it ------------------------------------------------------------------------------ */

static const struct section {
	const char *id, *title;
	const struct column *columns;
	size_t column_count;
	void (*add)(struct sheet *sheet, const struct view *view);       /* of a command; NULL: none */
	void (*add_event)(struct sheet *sheet, const struct view *view); /* of an event; likewise */
} sections[] = {
    {"idempotency", "Idempotency matrix", answer_columns, COUNT(answer_columns), add_idempotency},
    {"strategies", "Strategies", strategy_columns, COUNT(strategy_columns), add_strategy},
    {"retry", "Retry policy", retry_columns, COUNT(retry_columns), add_retry},
    {"exception_queues", "Exception queues", queue_columns, COUNT(queue_columns), add_queues,
     add_event_queue},
    {"failure_modes", "Failure modes", failure_columns, COUNT(failure_columns), add_failures},
    {"service_answers", "Answers of the service", service_columns, COUNT(service_columns),
     add_service},
    {"events", "Events", event_columns, COUNT(event_columns), NULL, add_event},
    {"reconciliation", "Reconciliation plan", reconciliation_columns, COUNT(reconciliation_columns),
     add_reconciliation},
    {"sequences", "Sequence diagrams", diagram_columns, COUNT(diagram_columns), add_diagram},
    {"runbook", "Runbook outline", runbook_columns, COUNT(runbook_columns), add_runbook},
};

static bool is_diagram(const struct section *section)
{
	return section->columns == diagram_columns;
}

static void write_section(struct str *out, const struct section *section, const struct sheet *sheet,
                          enum matrix_format format)
{
	if (format == MATRIX_JSON)
		sheet_write_json(out, sheet);
	else if (!sheet->first)
		return; /* no contract has any of it */
	else if (is_diagram(section))
		write_diagrams(out, sheet, format);
	else if (format == MATRIX_MARKDOWN)
		sheet_write_markdown(out, sheet);
	else
		sheet_write_text(out, sheet);
}

/* The contract at a place of the set: commands, then events. */
static const struct contract *contract_at(const struct contracts *contracts, size_t place)
{
	size_t commands = contracts_count(contracts);
	return place < commands ? contracts_at(contracts, place)
	                        : contracts_event_at(contracts, place - commands);
}

static size_t contract_count(const struct contracts *contracts)
{
	return contracts_count(contracts) + contracts_event_count(contracts);
}

/* The answers of every contract; NULL when memory is exhausted. */
static struct view *views_of(struct arena *arena, const struct contracts *contracts)
{
	size_t count = contract_count(contracts);
	struct view *views = arena_array(arena, count, sizeof *views);
	for (size_t i = 0; views && i < count; i++) {
		const struct contract *contract = contract_at(contracts, i);
		struct json *answers = NULL;
		if (json_read(arena, contract->text, strlen(contract->text), 0, &answers, NULL))
			return NULL;
		views[i] = (struct view){arena, contract, answers};
	}
	return views;
}

static void write_legend(struct str *out, const struct contracts *contracts,
                         enum matrix_format format)
{
	bool any = false;
	for (size_t i = 0; i < contract_count(contracts); i++)
		any = any || contract_at(contracts, i)->inherited.count > 0;
	if (any && format != MATRIX_JSON)
		str_addf(out, "%s answered by defaults.yaml\n\n", format == MATRIX_TEXT ? "*" : "\\*");
}

static void add_rows(const struct section *section, struct sheet *sheet, const struct view *view)
{
	bool event = view->contract->kind == CONTRACT_EVENT;
	void (*add)(struct sheet *, const struct view *) = event ? section->add_event : section->add;
	if (add)
		add(sheet, view);
}

void matrix_write(struct str *out, const struct contracts *contracts, enum matrix_format format)
{
	struct arena arena;
	arena_init(&arena, ARENA_BYTES_MAX);
	const struct view *views = views_of(&arena, contracts);
	str_adds(out, format == MATRIX_JSON ? "{" : "");
	write_legend(out, contracts, format);
	for (size_t i = 0; views && i < COUNT(sections); i++) {
		const struct section *section = &sections[i];
		struct sheet sheet;
		sheet_init(&sheet, &arena, section->id, section->title, section->columns,
		           section->column_count);
		for (size_t j = 0; j < contract_count(contracts); j++)
			add_rows(section, &sheet, &views[j]);
		str_adds(out, i && format == MATRIX_JSON ? "," : "");
		write_section(out, section, &sheet, format);
	}
	str_adds(out, format == MATRIX_JSON ? "}\n" : "");
	if (!views || arena.failed)
		out->failed = true;
	arena_release(&arena);
}
