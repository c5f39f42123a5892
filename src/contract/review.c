/* SPDX-License-Identifier: Apache-2.0 */
/* review.c -- the review checklists, answered from the contracts and the live schema.
 *
 * The questions are those of four published checklists (ERP integration, event-driven order
 * management, API idempotency, database deduplication) and a few of our own. Several questions
 * mean the same, so an answer is a function that any number of questions may use. */
#include "contract/review.h"

#include "contract/event.h"
#include "contract/sheet.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { TEXT_BYTES_MAX = 1 << 20, ARENA_BYTES_MAX = 256 << 20 };

enum review_verdict { PASS, FAIL, ASK, NOT_APPLICABLE };
static const char *const verdict_names[] = {"pass", "fail", "ask", "not applicable"};

struct answer {
	enum review_verdict verdict;
	const char *why; /* the evidence, the advice, what to check, or why it does not apply */
};

/* What the answers are given from. */
struct view {
	struct arena *arena;
	const struct contracts *contracts;
	const struct contract *contract;
	const struct review_live *live; /* NULL: no store was asked */
};

#define ANSWER(view, verdict, ...)                                                                 \
	((struct answer){(verdict), arena_printf((view)->arena, __VA_ARGS__)})

static const char *listed(const struct view *view, const struct texts *texts)
{
	struct str text = STR_INIT(TEXT_BYTES_MAX);
	for (size_t i = 0; i < texts->count; i++)
		str_addf(&text, "%s%s", i ? ", " : "", texts->items[i]);
	const char *copy = arena_strndup(view->arena, str_text(&text), text.size);
	str_release(&text);
	return copy ? copy : "";
}

static const char *lasting(const struct view *view, int64_t us)
{
	const char *text = contract_duration(view->arena, us);
	return text ? text : "";
}

/* ---- Identity ------------------------------------------------------------------------------- */

static struct answer fact(const struct view *view)
{
	return ANSWER(view, PASS, "fact: %s", view->contract->fact);
}

static struct answer effects(const struct view *view)
{
	return ANSWER(view, PASS, "fact: %s; covers: %s", view->contract->fact,
	              listed(view, &view->contract->covers));
}

static struct answer key(const struct view *view)
{
	const struct contract_key *key = &view->contract->key;
	if (view->contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS)
		return ANSWER(view, ASK,
		              "upstream.without_key: pass; a request without a key is passed on without "
		              "protection: does every caller that may repeat one send it?");
	if (key->from == KEY_HEADER)
		return ANSWER(view, PASS, "key.from: header, made by %s; one that comes without is refused",
		              key->generated_by);
	return ANSWER(view, PASS, "key.from: %s of the payload", listed(view, &key->fields));
}

static struct answer key_maker(const struct view *view)
{
	return ANSWER(view, PASS, "key.generated_by: %s", view->contract->key.generated_by);
}

static struct answer key_stable(const struct view *view)
{
	const struct contract_key *key = &view->contract->key;
	if (key->from == KEY_FIELDS)
		return ANSWER(view, PASS, "the key is %s of the payload, the same on every attempt",
		              listed(view, &key->fields));
	return ANSWER(
	    view, ASK,
	    "look at the code of %s: is the key made once per intent, before the first attempt, "
	    "kept, and sent again on every retry?",
	    key->generated_by);
}

static struct answer scope(const struct view *view)
{
	static const char *const names[] = {", client", ", actor", ", resource"};
	const struct contract_key *key = &view->contract->key;
	struct str parts = STR_INIT(64);
	for (size_t i = 0; i < COUNT(names); i++)
		str_adds(&parts, key->scope & (1u << i) ? names[i] : "");
	struct answer answer = ANSWER(view, PASS, "unique within tenant, operation%s",
	                              str_text(&parts));
	str_release(&parts);
	if (key->from == KEY_HEADER && !key->scope)
		return ANSWER(
		    view, ASK,
		    "unique within tenant and operation only: can two clients make the same key for "
		    "different intents? Then add client to key.scope");
	return answer;
}

static struct answer sources(const struct view *view)
{
	const char *const *by = view->contract->duplicates.by_source;
	return ANSWER(view, PASS, "client: %s, service: %s, broker: %s, replay: %s, human: %s", by[0],
	              by[1], by[2], by[3], by[4]);
}

/* ---- Payload -------------------------------------------------------------------------------- */

static struct answer fingerprint(const struct view *view)
{
	const struct contract_same *same = &view->contract->same;
	return ANSWER(view, PASS, "a SHA-256 of the canonical payload is kept with the command%s%s",
	              same->ignore.count ? "; left out: " : "", listed(view, &same->ignore));
}

static struct answer canonical(const struct view *view)
{
	return ANSWER(
	    view, PASS,
	    "RFC 8785 with every digit of a number kept; `ibid fingerprint --explain` shows the "
	    "bytes");
}

static struct answer conflict(const struct view *view)
{
	const struct contract_duplicates *duplicates = &view->contract->duplicates;
	bool evaluates = duplicates->rejected_other_payload != REJECTED_OTHER_CONFLICT;
	return ANSWER(view, PASS,
	              "refused as a conflict, and kept as evidence (duplicates.evidence: %s)%s%s",
	              duplicates->evidence == EVIDENCE_EACH ? "each" : "count",
	              evaluates ? "; after a rejection it is evaluated (rejected_other_payload)" : "",
	              view->contract->final[REFUSAL_VALIDATION]
	                  ? ""
	                  : "; the correction of an invalid one takes the key (failures.validation)");
}

static const char *classed(const struct view *view, enum field_class class)
{
	const struct contract *contract = view->contract;
	struct str found = STR_INIT(TEXT_BYTES_MAX);
	for (size_t i = 0; i < contract->field_count; i++)
		if (contract->fields[i].class == class)
			str_addf(&found, "%s%s", found.size ? ", " : "", contract->fields[i].pointer);
	const char *copy = arena_strndup(view->arena, str_text(&found), found.size);
	str_release(&found);
	return copy ? copy : "";
}

/* "payload: redact; store: /currency; omit: /cvc" */
static const char *classes(const struct view *view)
{
	const struct contract *contract = view->contract;
	struct str text = STR_INIT(TEXT_BYTES_MAX);
	str_addf(&text, "payload: %s", field_class_name(contract->payload));
	for (enum field_class class = CLASS_STORE; class <= CLASS_OMIT; class ++) {
		const char *fields = classed(view, class);
		if (*fields)
			str_addf(&text, "; %s: %s", field_class_name(class), fields);
	}
	const char *copy = arena_strndup(view->arena, str_text(&text), text.size);
	str_release(&text);
	return copy ? copy : "";
}

static struct answer payload_kept(const struct view *view)
{
	const struct contract *contract = view->contract;
	const char *retain = lasting(view, contract->key.retain_us);
	if (contract->payload == CLASS_OMIT)
		return ANSWER(view, PASS, "%s; its fingerprint is kept, and nothing else of it",
		              classes(view));
	if (contract->payload == CLASS_STORE)
		return ANSWER(view, ASK,
		              "%s; all else is kept as sent for %s: is none of it personal or secret?",
		              classes(view), retain);
	return ANSWER(view, PASS, "%s; kept for %s", classes(view), retain);
}

/* ---- Duplicates and answers ----------------------------------------------------------------- */

static const char *progress(const struct view *view)
{
	const struct contract_duplicates *duplicates = &view->contract->duplicates;
	switch (duplicates->in_progress) {
	case PROGRESS_ACCEPTED: return "accepted";
	case PROGRESS_WAIT:
		return arena_printf(view->arena, "wait %s", lasting(view, duplicates->wait_us));
	case PROGRESS_ANSWER: break;
	}
	return "answer";
}

static struct answer duplicates(const struct view *view)
{
	bool again = view->contract->duplicates.rejected == REJECTED_EVALUATE_AGAIN;
	return ANSWER(view, PASS, "completed: replay, rejected: %s, in progress: %s",
	              again ? "evaluate-again" : "replay", progress(view));
}

static struct answer in_progress(const struct view *view)
{
	return ANSWER(view, PASS, "duplicates.in_progress: %s; nothing runs twice", progress(view));
}

/* Which of its answers are kept. */
static struct answer service_replayed(const struct view *view)
{
	const struct contract_upstream *upstream = &view->contract->upstream;
	bool keeps_conflict = upstream->conflict == UPSTREAM_CONFLICT_KEEP;
	bool keeps_error = upstream->error == UPSTREAM_ERROR_KEEP;
	const char *store[] = {[ANSWER_FULL] = "byte for byte",
	                       [ANSWER_REFERENCE] = "",
	                       [ANSWER_STATUS] = "the status, no body",
	                       [ANSWER_NONE] = "only that it is done"};
	return ANSWER(view, view->contract->answer == ANSWER_NONE ? ASK : PASS,
	              "the service's 2xx, 3xx and 4xx%s%s, %s, with Content-Type%s%s; never 401, "
	              "403, 407, 408, 425, 429%s and 503",
	              keeps_conflict ? " with 409" : " but 409", keeps_error ? " and 5xx" : "",
	              store[view->contract->answer], upstream->headers.count ? ", " : "",
	              listed(view, &upstream->headers), keeps_error ? "" : ", 5xx");
}

static struct answer replayed(const struct view *view)
{
	if (view->contract->upstream.given)
		return service_replayed(view);
	switch (view->contract->answer) {
	case ANSWER_FULL:
		return ANSWER(view, PASS, "answer.store: full; byte for byte the first answer");
	case ANSWER_REFERENCE:
		return ANSWER(view, PASS, "answer.store: reference; the first status and the resource");
	case ANSWER_STATUS:
		return ANSWER(view, PASS, "answer.store: status; the first status, no body");
	case ANSWER_NONE: break;
	}
	return ANSWER(view, ASK,
	              "answer.store: none; a duplicate learns only that it is done: is that enough for "
	              "every caller?");
}

/* ---- Atomicity ------------------------------------------------------------------------------ */

#define CALLBACK                                                                                   \
	"look at the callback's code: only what it writes through ibid_work_sqlite or "                \
	"ibid_work_postgres commits with the command; "

#define STAGED                                                                                     \
	"staged: claimed and committed, worked on outside, and finished by a second transaction; "

/* How a staged command is recovered when its worker goes silent. */
static const char *recovered_by(const struct view *view)
{
	const struct contract_inquiry *inquiry = &view->contract->upstream.inquiry;
	if (inquiry->url)
		return arena_printf(
		    view->arena,
		    "recover: inquiry; %s is asked with pauses from %s to %s, and a person after %s",
		    inquiry->url, lasting(view, inquiry->backoff_min_us),
		    lasting(view, inquiry->backoff_max_us), lasting(view, inquiry->give_up_us));
	switch (view->contract->staged.recover) {
	case RECOVER_INQUIRY: return "recover: inquiry; the program asks the partner";
	case RECOVER_QUERY:
		return arena_printf(view->arena, "recover: %s looks at business state",
		                    view->contract->staged.query);
	case RECOVER_HUMAN: break;
	}
	return "recover: human; it becomes UNKNOWN, with an exception";
}

static bool is_staged(const struct view *view)
{
	return view->contract->staged.lease_us;
}

static struct answer atomic(const struct view *view)
{
	if (view->contract->upstream.given)
		return ANSWER(view, ASK,
		              STAGED "the service's change is in neither; %s: does that find every "
		                     "difference?",
		              recovered_by(view));
	if (is_staged(view))
		return ANSWER(view, ASK, STAGED "is what it does outside harmless when it is repeated?");
	if (view->contract->script)
		return ANSWER(view, PASS, "%s runs in the transaction that writes the command's row",
		              view->contract->script);
	return ANSWER(view, ASK, CALLBACK "does it change anything else?");
}

static struct answer recovery(const struct view *view)
{
	if (view->contract->script)
		return ANSWER(view, NOT_APPLICABLE, "they are committed atomically");
	if (is_staged(view))
		return ANSWER(view, PASS, "`ibid command recover` when the lease of %s has ended; %s",
		              lasting(view, view->contract->staged.lease_us), recovered_by(view));
	return ANSWER(view, ASK, CALLBACK "how is the rest recovered?");
}

static struct answer crash(const struct view *view)
{
	if (view->contract->script)
		return ANSWER(view, PASS, "no: row, effect, events and audit entry are one commit");
	if (is_staged(view))
		return ANSWER(view, ASK, STAGED "a crash leaves the row IN_PROGRESS, and %s: does it tell?",
		              recovered_by(view));
	return ANSWER(view, ASK, CALLBACK "what does a crash leave of the rest?");
}

static struct answer audited_once(const struct view *view)
{
	return ANSWER(view, PASS,
	              "no: one audit entry per accepted intent, by the primary key of the audit table");
}

static struct answer record(const struct view *view)
{
	return ANSWER(view, PASS, "the command's row, kept for key.retain: %s",
	              lasting(view, view->contract->key.retain_us));
}

static struct answer stale(const struct view *view)
{
	if (is_staged(view))
		return ANSWER(view, ASK,
		              "who runs `ibid command recover`, and how often? A lease ends after %s; %s",
		              lasting(view, view->contract->staged.lease_us), recovered_by(view));
	if (view->contract->script)
		return ANSWER(
		    view, PASS,
		    "there are none: the row is written with the outcome, and a crash rolls back");
	return ANSWER(view, PASS, "there are none: the row is written with the outcome");
}

/* ---- Business uniqueness -------------------------------------------------------------------- */

static struct answer index_wrong(const struct view *view, const char *name,
                                 const struct index_row *index)
{
	if (!index->table)
		return ANSWER(
		    view, FAIL,
		    "unique: %s is declared, but %s has no index or constraint of that name: create "
		    "it, or name the one that guards the fact",
		    name, view->live->store);
	if (!index->unique)
		return ANSWER(
		    view, FAIL,
		    "unique: %s is declared, but the index %s on %s (%s) is not unique: create it "
		    "as a unique index",
		    name, name, index->table, index->columns);
	return ANSWER(view, FAIL,
	              "unique: %s is declared, but the index on %s (%s) is invalid and guards nothing: "
	              "drop it and create it again",
	              name, index->table, index->columns);
}

/* The declared indexes against the live ones. */
static struct answer indexes(const struct view *view)
{
	const struct contract *contract = view->contract;
	struct str found = STR_INIT(TEXT_BYTES_MAX);
	for (size_t i = 0; i < contract->unique_count; i++) {
		const char *name = contract->uniques[i].name;
		const struct index_row *index = view->live ? &view->live->indexes[i] : NULL;
		if (index && !(index->table && index->unique && index->valid)) {
			str_release(&found);
			return index_wrong(view, name, index);
		}
		str_addf(&found, "%s%s", i ? "; " : "", name);
		if (index)
			str_addf(&found, ": unique on %s (%s)%s", index->table, index->columns,
			         index->partial ? ", for the rows that its condition selects" : "");
	}
	struct answer answer =
	    view->live
	        ? ANSWER(view, PASS, "%s", str_text(&found))
	        : ANSWER(view, ASK, "unique: %s; is the index there? `--store` lets the review look",
	                 str_text(&found));
	str_release(&found);
	return answer;
}

static struct answer unique(const struct view *view)
{
	const struct contract *contract = view->contract;
	if (contract->unique_count)
		return indexes(view);
	if (contract->upstream.given && contract->key.from == KEY_HEADER)
		return ANSWER(
		    view, ASK,
		    "handler: upstream; look at the service: does an index of its own refuse what "
		    "comes a second time under another key?");
	if (contract->key.from == KEY_FIELDS)
		return ANSWER(view, PASS,
		              "the same fact has the same key, %s, and the key is the primary key of the "
		              "command's row for %s",
		              listed(view, &contract->key.fields), lasting(view, contract->key.retain_us));
	if (contract_looks(contract))
		return ANSWER(
		    view, ASK,
		    "strategy: %s, of commands that hold %s one at a time; who else writes there? An index "
		    "would stop them, too",
		    contract_strategy_name(contract->strategy), listed(view, &contract->serialize_by));
	return ANSWER(
	    view, ASK,
	    "no `unique` is declared: is there a reference or document number that two commands "
	    "with different keys must not share? Then guard it by a unique index and declare it");
}

/* The same intent under a new key: what the strategy does about it. */
static struct answer new_key(const struct view *view)
{
	const struct contract *contract = view->contract;
	if (contract->unique_count)
		return indexes(view);
	if (contract->already)
		return ANSWER(view, PASS, "strategy: %s; %s finds it under any key, in its transaction",
		              contract_strategy_name(contract->strategy), contract->already);
	if (contract->strategy == STRATEGY_COMMUTATIVE)
		return ANSWER(view, PASS, "strategy: commutative; %s is the same after a repetition",
		              contract->state);
	if (contract->strategy == STRATEGY_NONE)
		return ANSWER(view, ASK, "strategy: none, because %s: is that so?", contract->because);
	return unique(view);
}

/* The key's own constraint is always there; a declared one must be, too. */
static struct answer unique_key(const struct view *view)
{
	if (view->contract->unique_count)
		return indexes(view);
	return ANSWER(view, PASS,
	              "tenant, operation, scope and key are the primary key of the command");
}

static struct answer expiry(const struct view *view)
{
	if (view->contract->key.after_expiry == EXPIRY_REFUSE)
		return ANSWER(view, PASS, "key.after_expiry: refuse");
	if (!view->contract->unique_count)
		return ANSWER(
		    view, FAIL,
		    "key.after_expiry: run-again, but no `unique` protects the fact once the key is "
		    "forgotten: declare one, or refuse");
	return indexes(view);
}

/* ---- Retention ------------------------------------------------------------------------------ */

static struct answer retention(const struct view *view)
{
	const struct contract *contract = view->contract;
	const char *retain = lasting(view, contract->key.retain_us);
	int64_t window_us = contract->key.replay_window_us;
	if (contract->key.retain_us < window_us)
		return ANSWER(view, FAIL,
		              "key.retain is %s, but key.replay_window is %s: a duplicate would come after "
		              "its key was forgotten: raise key.retain",
		              retain, lasting(view, window_us));
	if (contract->key.retain_us < contract->duplicates.wait_us)
		return ANSWER(view, FAIL,
		              "key.retain is %s, but a duplicate may wait %s for the first answer: raise "
		              "key.retain",
		              retain, lasting(view, contract->duplicates.wait_us));
	if (!window_us)
		return ANSWER(
		    view, ASK,
		    "key.retain: %s; for how long may a client, a broker or a person send it again? "
		    "Declare it as key.replay_window",
		    retain);
	return ANSWER(view, PASS, "key.retain: %s, key.replay_window: %s", retain,
	              lasting(view, window_us));
}

static struct answer evidence_kept(const struct view *view)
{
	const struct contract *contract = view->contract;
	const char *audit = lasting(view, contract->audit_retain_us);
	const char *retain = lasting(view, contract->key.retain_us);
	if (contract->audit_retain_us < contract->key.retain_us)
		return ANSWER(view, FAIL,
		              "audit.retain is %s, but key.retain is %s: evidence must outlive the key",
		              audit, retain);
	return ANSWER(view, PASS, "audit.retain: %s, key.retain: %s", audit, retain);
}

static struct answer growth(const struct view *view)
{
	return ANSWER(view, ASK,
	              "`ibid retain` empties commands after %s and removes them after %s: who runs it, "
	              "and how often?",
	              lasting(view, view->contract->key.retain_us),
	              lasting(view, view->contract->audit_retain_us));
}

/* ---- Events --------------------------------------------------------------------------------- */

static struct answer of_events(const struct view *view, enum review_verdict verdict,
                               const char *text)
{
	if (!view->contract->emits.count)
		return ANSWER(view, NOT_APPLICABLE, "emits: []");
	return ANSWER(view, verdict, "%s: %s", listed(view, &view->contract->emits), text ? text : "");
}

static struct answer outbox(const struct view *view)
{
	return of_events(view, PASS, "the outbox row is written in the command's transaction");
}

static struct answer event_identity(const struct view *view)
{
	return of_events(view, PASS, "the id is the command's and an ordinal, a primary key");
}

static struct answer partition_key(const struct view *view)
{
	return of_events(view, PASS,
	                 contracts_event_count(view->contracts)
	                     ? "it is made by the event's contract when the outbox row is written"
	                     : "aggregate type and id are columns of the outbox row");
}

static struct answer ordering(const struct view *view)
{
	return of_events(view, PASS, "versions of an aggregate are contiguous, by compare-and-set");
}

static struct answer consumers(const struct view *view)
{
	return of_events(view, ASK,
	                 "look at each consumer: does it keep the event's id in the transaction of its "
	                 "effect, before it acknowledges?");
}

static struct answer publisher(const struct view *view)
{
	return of_events(view, ASK,
	                 "this version publishes nothing itself: look at what reads the outbox");
}

static struct answer poison(const struct view *view)
{
	return of_events(view, ASK, "look at each consumer: where does a record go that always fails?");
}

static struct answer outbox_retention(const struct view *view)
{
	return of_events(
	    view, ASK,
	    "outbox rows stay until `ibid retain --events-older-than` removes them: for how "
	    "long must they be there to be read again?");
}

static struct answer no_consumer(const struct view *view)
{
	return ANSWER(view, NOT_APPLICABLE, "a command is called; it consumes no messages");
}

static bool emits(const struct contract *contract, const char *event)
{
	for (size_t i = 0; i < contract->emits.count; i++)
		if (strcmp(contract->emits.items[i], event) == 0)
			return true;
	return false;
}

/* Another owner's command that emits the event, too. */
static const struct contract *other_emitter(const struct view *view, const char *event)
{
	for (size_t i = 0; i < contracts_count(view->contracts); i++) {
		const struct contract *other = contracts_at(view->contracts, i);
		if (strcmp(other->owner, view->contract->owner) != 0 && emits(other, event))
			return other;
	}
	return NULL;
}

/* Their contracts say so, or nothing does: where a directory has any, it has one for each. */
static struct answer declared_owners(const struct view *view)
{
	const struct texts *emits = &view->contract->emits;
	struct str owners = STR_INIT(TEXT_BYTES_MAX);
	bool all = true;
	for (size_t i = 0; i < emits->count; i++) {
		const struct event_contract *event = contracts_event(view->contracts, emits->items[i]);
		str_addf(&owners, "%s%s is owned by %s", i ? ", " : "", emits->items[i],
		         event ? event->owner : "nobody");
		all = all && event;
	}
	struct answer answer = ANSWER(view, all ? PASS : FAIL, "%s", str_text(&owners));
	str_release(&owners);
	return emits->count ? answer : of_events(view, PASS, NULL);
}

/* An event without a contract belongs to the owner of the command that emits it. It has no owner if
 * commands of several owners emit it. */
static struct answer event_owner(const struct view *view)
{
	const struct contract *contract = view->contract;
	if (contracts_event_count(view->contracts))
		return declared_owners(view);
	for (size_t i = 0; i < contract->emits.count; i++) {
		const char *event = contract->emits.items[i];
		const struct contract *other = other_emitter(view, event);
		if (other)
			return ANSWER(view, FAIL,
			              "%s has no single owner: %s (%s) and %s (%s) emit it: let one owner emit "
			              "it, or give it two names",
			              event, contract->name, contract->owner, other->name, other->owner);
	}
	return of_events(view, PASS,
	                 arena_printf(view->arena, "owned by %s, as the command", contract->owner));
}

/* ---- Outside -------------------------------------------------------------------------------- */

static struct answer external(const struct view *view)
{
	if (view->contract->upstream.given)
		return ANSWER(view, ASK,
		              "strategy: %s; the service gets the Idempotency-Key: does it enforce it, or "
		              "is it only protected by what is kept here?",
		              contract_strategy_name(view->contract->strategy));
	if (view->contract->strategy == STRATEGY_EXTERNAL)
		return ANSWER(
		    view, ASK,
		    "strategy: external; look at the partner: does it enforce a key, and can it be "
		    "asked what became of a request?");
	if (view->contract->script)
		return ANSWER(view, NOT_APPLICABLE, "%s works inside the database", view->contract->script);
	return ANSWER(view, ASK, "look at the callback's code: does it call another system, and how?");
}

/* What the contract takes for granted about answers that do not say what was done. */
static struct answer service_means(const struct view *view)
{
	const struct contract_upstream *upstream = &view->contract->upstream;
	bool error = upstream->error == UPSTREAM_ERROR_RETRY;
	if (!upstream->given)
		return ANSWER(view, NOT_APPLICABLE, "no other service does the work");
	if (error || upstream->conflict == UPSTREAM_CONFLICT_RETRY)
		return ANSWER(view, ASK,
		              "%s%s%s: retry; then the same key is passed on again: look at the service: "
		              "can it answer so after it has changed something?",
		              error ? "upstream.error" : "",
		              error && upstream->conflict == UPSTREAM_CONFLICT_RETRY ? " and " : "",
		              upstream->conflict == UPSTREAM_CONFLICT_RETRY ? "upstream.conflict" : "");
	if (upstream->error == UPSTREAM_ERROR_KEEP)
		return ANSWER(
		    view, ASK,
		    "upstream.error: keep; a failure that would pass becomes the key's answer: is "
		    "that meant?");
	return ANSWER(view, PASS, "upstream.error: unknown, upstream.conflict: keep; %s",
	              recovered_by(view));
}

/* May it be sent again where it may have been done? */
static struct answer blind_retry(const struct view *view)
{
	const struct contract_upstream *upstream = &view->contract->upstream;
	if (upstream->given &&
	    (upstream->error == UPSTREAM_ERROR_RETRY || upstream->conflict == UPSTREAM_CONFLICT_RETRY))
		return service_means(view);
	if (is_staged(view))
		return ANSWER(view, PASS, "a worker that went silent is fenced, nothing is run again; %s",
		              recovered_by(view));
	return external(view);
}

static struct answer inquiry(const struct view *view)
{
	if (is_staged(view) && view->contract->staged.recover != RECOVER_HUMAN)
		return ANSWER(view, PASS, "%s", recovered_by(view));
	return external(view);
}

static struct answer unknown(const struct view *view)
{
	const struct contract_upstream *upstream = &view->contract->upstream;
	if (upstream->given && upstream->unknown == UPSTREAM_UNKNOWN_ACCEPTED)
		return ANSWER(
		    view, ASK,
		    "upstream.unknown: accepted; %s; look at the clients: do they take the 202 for "
		    "success, or look at its Location?",
		    recovered_by(view));
	if (is_staged(view))
		return ANSWER(view, PASS,
		              "%s; without an answer the command is UNKNOWN, and an exception for %s opens",
		              recovered_by(view), view->contract->owner);
	return ANSWER(view, PASS,
	              "a commit that did not report success is looked up before anything is repeated; "
	              "reconciled_by: %s",
	              view->contract->reconciled_by);
}

static struct answer reconciled(const struct view *view)
{
	return ANSWER(view, ASK,
	              "reconciled_by: %s; look at it: does it compare %s, and when does it run?",
	              view->contract->reconciled_by, listed(view, &view->contract->covers));
}

static struct answer breaks(const struct view *view)
{
	return ANSWER(view, ASK, "reconciled_by: %s; do its breaks reach %s, with their age?",
	              view->contract->reconciled_by, view->contract->owner);
}

/* ---- Failures and people -------------------------------------------------------------------- */

static struct answer classified(const struct view *view)
{
	static const char *const meanings[] = {
	    [UPSTREAM_ERROR_KEEP] = "; of the service: 5xx: keep",
	    [UPSTREAM_ERROR_RETRY] = "; of the service: 5xx: retry",
	    [UPSTREAM_ERROR_UNKNOWN] = "; of the service: 5xx: unknown"};
	const struct contract_upstream *upstream = &view->contract->upstream;
	const bool *final = view->contract->final;
	return ANSWER(
	    view, PASS, "failures: validation: %s, business: %s, server: %s%s%s",
	    final[REFUSAL_VALIDATION] ? "final" : "retry", final[REFUSAL_BUSINESS] ? "final" : "retry",
	    final[REFUSAL_SERVER] ? "final" : "retry", upstream->given ? meanings[upstream->error] : "",
	    !upstream->given                                ? ""
	    : upstream->conflict == UPSTREAM_CONFLICT_RETRY ? ", 409: retry"
	                                                    : ", 409: keep");
}

static struct answer transient(const struct view *view)
{
	const struct contract_upstream *upstream = &view->contract->upstream;
	if (upstream->given && upstream->error == UPSTREAM_ERROR_KEEP)
		return service_means(view);
	if (!view->contract->final[REFUSAL_SERVER])
		return ANSWER(view, PASS,
		              "no: failures.server: retry; busy and unreachable are never kept");
	return ANSWER(view, ASK,
	              "failures.server: final; a failure that would pass becomes the key's answer: is "
	              "that meant?");
}

static struct answer backoff(const struct view *view)
{
	return ANSWER(view, ASK,
	              "inside, retries are bounded with random pauses; look at the code of %s: does it "
	              "back off with jitter and give up?",
	              view->contract->key.generated_by);
}

static struct answer owner(const struct view *view)
{
	return ANSWER(view, PASS, "owner: %s", view->contract->owner);
}

static struct answer visible(const struct view *view)
{
	return ANSWER(view, PASS,
	              "`ibid exception list`, `ibid command list --state failed` (or unknown), `ibid "
	              "command show`");
}

static struct answer manual_replay(const struct view *view)
{
	const char *const *by = view->contract->duplicates.by_source;
	return ANSWER(
	    view, PASS,
	    "the same key may be sent again by anyone (replay: %s, human: %s); after %s it %s", by[3],
	    by[4], lasting(view, view->contract->key.retain_us),
	    view->contract->key.after_expiry == EXPIRY_REFUSE ? "is refused"
	                                                      : "runs again, guarded by `unique`");
}

static struct answer repaired(const struct view *view)
{
	const char *by = view->contract->corrected_by;
	if (contracts_find(view->contracts, by))
		return ANSWER(view, PASS,
		              "corrected_by: %s, a contract here: each one leaves an audit entry", by);
	return ANSWER(view, ASK,
	              "corrected_by: %s, which has no contract here: who writes its evidence?", by);
}

/* ---- Metrics: docs/http.md describes them, deploy/prometheus/ibid.rules.yml has alerts on them */

/* A C callback is run by the program that links libibid, whose commands no server counts. */
static bool is_counted(const struct contract *contract)
{
	return contract->script || contract->upstream.given;
}

static struct answer not_counted(const struct view *view)
{
	return ANSWER(
	    view, ASK,
	    "/metrics of `ibid serve` counts the commands that the server runs, and not those "
	    "of `handler: callback`: what counts the results of %s in your program?",
	    view->contract->name);
}

static struct answer metrics_of_results(const struct view *view)
{
	if (!is_counted(view->contract))
		return not_counted(view);
	return ANSWER(view, PASS,
	              "/metrics of `ibid serve`: ibid_commands_total{operation=\"%s\"}, by `decision` "
	              "(executed, conflict, in_progress, unknown and others) and `replayed`; "
	              "ibid_stale_commands and ibid_unknown_commands for all operations",
	              view->contract->name);
}

static struct answer metrics_of_duplicates(const struct view *view)
{
	if (!is_counted(view->contract))
		return not_counted(view);
	return ANSWER(view, PASS,
	              "/metrics of `ibid serve`: ibid_commands_total{operation=\"%s\","
	              "replayed=\"true\"} as a share of all; `ibid command show` counts the duplicates "
	              "of one key",
	              view->contract->name);
}

static struct answer alert_on_conflicts(const struct view *view)
{
	if (!is_counted(view->contract))
		return not_counted(view);
	return ANSWER(view, ASK,
	              "IbidConflictSpike of deploy/prometheus/ibid.rules.yml, on "
	              "ibid_commands_total{operation=\"%s\",decision=\"conflict\"}: does your "
	              "Prometheus load it, and who is called?",
	              view->contract->name);
}

static struct answer metrics_of_outbox(const struct view *view)
{
	(void)view;
	return (struct answer){
	    ASK,
	    "/metrics of `ibid serve` and `ibid relay`: ibid_outbox_backlog, "
	    "ibid_outbox_oldest_seconds, ibid_outbox_parked; alerts: IbidOutbox... and IbidRelay... of "
	    "deploy/prometheus/ibid.rules.yml. Does your Prometheus load them, who is called, and "
	    "what measures the inboxes of consumers?"};
}

/* ---- Our own -------------------------------------------------------------------------------- */

static const char complete_question[] = "Is every contract complete, and free of contradictions?";

static struct answer complete(const struct view *view)
{
	return ANSWER(view, PASS, "%s: every question is answered", view->contract->file);
}

static struct answer kept(const struct view *view)
{
	const struct contract *contract = view->contract;
	if (!view->live)
		return ANSWER(view, ASK, "`--store` lets the review look");
	if (!view->live->kept)
		return ANSWER(view, ASK,
		              "version %d is not kept yet: is it put to use by `ibid contract apply`?",
		              contract->version);
	if (memcmp(&view->live->kept->digest, &contract->digest, sizeof contract->digest) != 0)
		return ANSWER(
		    view, FAIL,
		    "version %d in the store says something else: give the changed contract a new "
		    "version",
		    contract->version);
	return ANSWER(view, PASS, "version %d, word for word", contract->version);
}

static bool is_missing(const struct view *view, const char *file, const char *store)
{
	const char *text;
	struct ibid_err err;
	return file && contracts_read_file(view->contracts, view->arena, file, store, &text, &err);
}

/* The first script that the contract names and the directory does not have for this store. */
static const char *missing_script(const struct view *view, const char *store)
{
	const struct contract *contract = view->contract;
	const char *const files[] = {contract->script, contract->already, contract->state,
	                             contract->staged.query};
	for (size_t i = 0; i < COUNT(files) + contract->unique_count; i++) {
		const char *file = i < COUNT(files) ? files[i] : contract->uniques[i - COUNT(files)].find;
		if (is_missing(view, file, store))
			return contract_file_name(view->arena, file, store);
	}
	return NULL;
}

static struct answer scripts(const struct view *view)
{
	const char *store = view->live ? view->live->store : NULL;
	const char *missing = missing_script(view, store ? store : "sqlite");
	if (!missing && !store)
		missing = missing_script(view, "postgres");
	if (missing && store)
		return ANSWER(view, FAIL, "%s is missing: write it, or use another store", missing);
	if (missing)
		return ANSWER(view, ASK, "%s is missing: is that store never used?", missing);
	if (!store)
		return ANSWER(view, PASS, "every script is there for both stores");
	if (view->live->scripts)
		return ANSWER(view, FAIL, "it does not run: %s", view->live->scripts);
	return ANSWER(view, PASS, "every script is there for %s, and its database prepares it", store);
}

/* The rules refuse a contract whose strategy lacks a member. The questions here need the store or a
 * person. */
static struct answer strategy(const struct view *view)
{
	const struct contract *contract = view->contract;
	const char *name = contract_strategy_name(contract->strategy);
	const char *proof = contract_strategy_needs(contract->strategy)->proof;
	switch (contract->strategy) {
	case STRATEGY_UNIQUE: return indexes(view);
	case STRATEGY_NONE: return new_key(view);
	case STRATEGY_EXTERNAL:
		if (contract->upstream.given)
			return external(view);
		return ANSWER(view, ASK,
		              "strategy: external; %s; is ibid_work_external_key what the partner gets?",
		              proof);
	default: return ANSWER(view, PASS, "strategy: %s; %s", name, proof);
	}
}

/* ---- Questions ------------------------------------------------------------------------------ */

enum checklist { ERP, OMS, API, DB, OURS };

static const struct {
	const char *prefix, *id, *title;
} checklists[] = {
    [ERP] = {"ERP", "erp", "ERP integration"},
    [OMS] = {"OMS", "oms", "Event-driven order management"},
    [API] = {"API", "api", "API idempotency"},
    [DB] = {"DB", "db", "Database deduplication"},
    [OURS] = {"IBID", "ibid", "Contracts and store"},
};

/* In the order of the checklists, whose numbers are the places in them. */
static const struct question {
	enum checklist checklist;
	const char *text;
	struct answer (*answer)(const struct view *view);
} questions[] = {
    {ERP, "Does every mutating command have an idempotency key?", key},
    {ERP, "Is the key stable across retry?", key_stable},
    {ERP, "Is the key scoped correctly?", scope},
    {ERP, "Is payload hash stored?", fingerprint},
    {ERP, "Is duplicate behavior defined?", duplicates},
    {ERP, "Is conflict behavior defined?", conflict},
    {ERP, "Is unique constraint enforced in the database?", unique_key},
    {ERP, "Is the response deterministic for duplicate commands?", replayed},
    {ERP, "Is outbox written in same transaction as business state?", outbox},
    {ERP, "Is inbox used by consumers?", consumers},
    {ERP, "Is event identity stable?", event_identity},
    {ERP, "Is ordering required and enforced?", ordering},
    {ERP, "Is replay supported safely?", manual_replay},
    {ERP, "Is duplicate event application harmless?", consumers},
    {ERP, "Are broker acknowledgments aligned with DB commit?", consumers},
    {ERP, "Is the external request idempotent?", external},
    {ERP, "Is unknown outcome modelled?", unknown},
    {ERP, "Is status inquiry available?", inquiry},
    {ERP, "Is blind retry prohibited after possible execution?", blind_retry},
    {ERP, "Is external reference stored?", external},
    {ERP, "Is reconciliation scheduled?", reconciled},
    {ERP, "Are failures classified?", classified},
    {ERP, "Is backoff with jitter used?", backoff},
    {ERP, "Is max attempt configured?", backoff},
    {ERP, "Is DLQ/quarantine visible?", visible},
    {ERP, "Is owner assigned?", owner},
    {ERP, "Is manual replay controlled?", manual_replay},
    {ERP, "Is every resolution audited?", repaired},
    {ERP, "Are count/sum/hash/status reconciliations defined?", reconciled},
    {ERP, "Are control totals captured?", reconciled},
    {ERP, "Are exceptions routed to workflow?", breaks},
    {ERP, "Is aging monitored?", breaks},
    {ERP, "Are close blockers visible?", breaks},
    {ERP, "Can support answer \"what happened\" without raw SQL?", visible},

    {OMS, "Does the producer write domain state and outbox in one DB transaction?", outbox},
    {OMS, "Is the outbox event id stable and unique?", event_identity},
    {OMS, "Is the Kafka partition key stored in the outbox row?", partition_key},
    {OMS, "Can publisher recover stale claims?", publisher},
    {OMS, "Are aggregate event ordering rules defined?", ordering},
    {OMS, "Does consumer use inbox dedupe?", consumers},
    {OMS, "Does business command have idempotency beyond inbox?", key},
    {OMS, "Is there a database constraint for critical uniqueness?", unique},
    {OMS, "Are external side effects idempotent?", external},
    {OMS, "Are retries classified?", classified},
    {OMS, "Are poison records parked or sent to DLT?", poison},
    {OMS, "Is replay safe or explicitly blocked?", manual_replay},
    {OMS, "Are outbox/inbox metrics and alerts defined?", metrics_of_outbox},
    {OMS, "Are manual repair operations audited?", repaired},
    {OMS, "Is retention defined for outbox and inbox records?", outbox_retention},

    {API, "What is the business side effect?", effects},
    {API, "What duplicate inputs can occur?", sources},
    {API, "What identifies same intent?", key},
    {API, "What identifies conflicting intent?", conflict},
    {API, "What is the idempotency scope?", scope},
    {API, "Is there a durable idempotency record?", record},
    {API, "Is the dedupe guard in the same transaction as the side effect?", atomic},
    {API, "Is there a database unique constraint for the business effect?", unique},
    {API, "What response is replayed?", replayed},
    {API, "What happens if the request is still in progress?", in_progress},
    {API, "What is the TTL/retention policy?", retention},
    {API, "Does retry produce duplicate audit events?", audited_once},
    {API, "Does outbox event duplicate cause duplicate consumer side effect?", consumers},
    {API, "Does external API support idempotency key?", external},
    {API, "How are unknown outcomes reconciled?", unknown},
    {API, "What metrics show duplicate rate?", metrics_of_duplicates},
    {API, "What alert fires when idempotency conflicts spike?", alert_on_conflicts},
    {API, "Can operators safely replay the command/message?", manual_replay},

    {DB, "What is the logical command?", fact},
    {DB, "Who generates the idempotency key?", key_maker},
    {DB, "What is the uniqueness scope?", scope},
    {DB, "Is the key stable across retries?", key_stable},
    {DB, "Is the key independent from transport attempts?", key_stable},
    {DB, "Do we store request fingerprint?", fingerprint},
    {DB, "What happens if the same key arrives with different payload?", conflict},
    {DB, "Is request canonicalization deterministic?", canonical},
    {DB, "Are dedup marker and business effect committed atomically?", atomic},
    {DB, "If not, what is the recovery protocol?", recovery},
    {DB, "Can a crash create marker-without-effect?", crash},
    {DB, "Can a crash create effect-without-marker?", crash},
    {DB, "Is there a natural duplicate condition?", new_key},
    {DB, "Is it enforced with a database constraint/index?", unique},
    {DB, "Does idempotency still work if client sends a new key?", new_key},
    {DB, "What response does a retry receive?", replayed},
    {DB, "Do we cache full response, resource reference, or status?", replayed},
    {DB, "Are terminal errors cached?", classified},
    {DB, "Are transient failures cached incorrectly?", transient},
    {DB, "How long are keys retained?", retention},
    {DB, "What happens after expiry?", expiry},
    {DB, "Is expiry compliant with audit/retention requirements?", evidence_kept},
    {DB, "Is storage growth bounded?", growth},
    {DB, "What is the message dedup key?", no_consumer},
    {DB, "Is dedup persisted before ack?", no_consumer},
    {DB, "Are dedup and side effect in the same transaction?", no_consumer},
    {DB, "Can replay safely reprocess messages?", no_consumer},
    {DB, "How do we inspect stuck commands?", visible},
    {DB, "How do we recover stale IN_PROGRESS rows?", stale},
    {DB, "How do we reconcile external ambiguous outcomes?", inquiry},
    {DB, "What metrics prove idempotency is working?", metrics_of_results},

    {OURS, complete_question, complete},
    {OURS, "Does the store keep the contract that the directory holds?", kept},
    {OURS, "Is there a script for the store, and would it run?", scripts},
    {OURS, "Does every event have one owner?", event_owner},
    {OURS, "Does the strategy have what it needs?", strategy},
    {OURS, "What is kept of a payload, and how?", payload_kept},
    {OURS, "Do the answers of the service mean what the contract takes them for?", service_means},
};

/* ---- Writing -------------------------------------------------------------------------------- */

static const struct column columns[] = {{"operation", "Operation"},
                                        {"id", "Id"},
                                        {"answer", "Answer"},
                                        {"question", "Question"},
                                        {"why", "Evidence, or what to do or look at"}};

struct pages {
	struct arena *arena;
	struct sheet sheets[COUNT(checklists)];
	struct sheet failures; /* the failed rows again, printed first */
	struct review_counts *counts;
};

static void count(struct review_counts *counts, enum review_verdict verdict)
{
	counts->pass += verdict == PASS;
	counts->fail += verdict == FAIL;
	counts->ask += verdict == ASK;
	counts->not_applicable += verdict == NOT_APPLICABLE;
}

static void add(struct pages *pages, enum checklist checklist, const char *operation,
                const char *id, const char *question, struct answer answer)
{
	struct cell cells[] = {{operation, false},
	                       {id, false},
	                       {verdict_names[answer.verdict], false},
	                       {question, false},
	                       {answer.why, false}};
	count(pages->counts, answer.verdict);
	sheet_add(&pages->sheets[checklist], cells);
	if (answer.verdict == FAIL)
		sheet_add(&pages->failures, cells);
}

/* "ERP-7": the checklist and the question's place in it. */
static const char *question_id(struct arena *arena, size_t index)
{
	size_t first = index;
	while (first > 0 && questions[first - 1].checklist == questions[index].checklist)
		first--;
	return arena_printf(arena, "%s-%zu", checklists[questions[index].checklist].prefix,
	                    index - first + 1);
}

static const char *complete_id(struct arena *arena)
{
	size_t i = 0;
	while (questions[i].answer != complete)
		i++;
	return question_id(arena, i);
}

static void add_problem(struct pages *pages, const struct contract_problem *problem)
{
	const char *why = problem->line
	                      ? arena_printf(pages->arena, "%s:%d: %s", problem->file, problem->line,
	                                     problem->text)
	                      : arena_printf(pages->arena, "%s: %s", problem->file, problem->text);
	const char *name = strrchr(problem->file, '/');
	add(pages, OURS, name ? name + 1 : problem->file, complete_id(pages->arena),
	    problem->question ? problem->question : complete_question, (struct answer){FAIL, why});
}

static void add_contract(struct pages *pages, const struct view *view)
{
	for (size_t i = 0; i < COUNT(questions); i++)
		add(pages, questions[i].checklist, view->contract->name, question_id(view->arena, i),
		    questions[i].text, questions[i].answer(view));
}

static void write_json(struct str *out, const struct pages *pages)
{
	const struct review_counts *counts = pages->counts;
	str_addf(out, "{\"pass\":%zu,\"fail\":%zu,\"ask\":%zu,\"notApplicable\":%zu", counts->pass,
	         counts->fail, counts->ask, counts->not_applicable);
	for (size_t i = 0; i < COUNT(checklists); i++) {
		str_addc(out, ',');
		sheet_write_json(out, &pages->sheets[i]);
	}
	str_adds(out, "}\n");
}

static void write_pages(struct str *out, const struct pages *pages, enum matrix_format format)
{
	const struct review_counts *counts = pages->counts;
	void (*write)(struct str *, const struct sheet *) = format == MATRIX_MARKDOWN
	                                                        ? sheet_write_markdown
	                                                        : sheet_write_text;
	if (counts->fail)
		write(out, &pages->failures);
	for (size_t i = 0; i < COUNT(checklists); i++)
		write(out, &pages->sheets[i]);
	str_addf(out, "%zu pass, %zu fail, %zu for a person to answer, %zu not applicable\n",
	         counts->pass, counts->fail, counts->ask, counts->not_applicable);
}

void review_write(struct str *out, const struct contracts *contracts,
                  const struct review_live *lives, enum matrix_format format,
                  struct review_counts *ret)
{
	struct arena arena;
	arena_init(&arena, ARENA_BYTES_MAX);
	*ret = (struct review_counts){0};
	struct pages pages = {.arena = &arena, .counts = ret};
	sheet_init(&pages.failures, &arena, "failures", "Fails the review", columns, COUNT(columns));
	for (size_t i = 0; i < COUNT(checklists); i++)
		sheet_init(&pages.sheets[i], &arena, checklists[i].id, checklists[i].title, columns,
		           COUNT(columns));
	for (size_t i = 0; i < contracts_problem_count(contracts); i++)
		add_problem(&pages, contracts_problem(contracts, i));
	for (size_t i = 0; i < contracts_count(contracts); i++)
		add_contract(&pages, &(struct view){&arena, contracts, contracts_at(contracts, i),
		                                    lives ? &lives[i] : NULL});
	if (format == MATRIX_JSON)
		write_json(out, &pages);
	else
		write_pages(out, &pages, format);
	out->failed = out->failed || arena.failed;
	arena_release(&arena);
}

void review_reference(struct str *out)
{
	struct arena arena = {0};
	for (size_t i = 0; i < COUNT(questions); i++) {
		enum checklist checklist = questions[i].checklist;
		if (i == 0 || questions[i - 1].checklist != checklist)
			str_addf(out, "%s### %s\n\n| id | question |\n|---|---|\n", i ? "\n" : "",
			         checklists[checklist].title);
		str_addf(out, "| %s | %s |\n", question_id(&arena, i), questions[i].text);
	}
	out->failed = out->failed || arena.failed;
	arena_release(&arena);
}
