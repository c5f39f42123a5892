/* SPDX-License-Identifier: Apache-2.0 */
/* submission.h -- one command on its way to an outcome: what submitting, staging, finishing and
 * recovering have in common. They are one course of attempts and differ in what an attempt does
 * with the identity that it claimed. */
#ifndef COMMAND_SUBMISSION_H
#define COMMAND_SUBMISSION_H

#include "command/decide.h"
#include "command/group.h"
#include "command/ledger.h"
#include "command/work.h"

/* What an attempt does with the identity that it claimed. */
enum goal {
	GOAL_SUBMIT,    /* run it, in one transaction */
	GOAL_STAGE,     /* claim it, under a lease */
	GOAL_TAKE_OVER, /* over: the lease under `token` has ended */
	GOAL_FINISH,    /* under the lease that is held */
	GOAL_RESOLVE,   /* likewise, what is UNKNOWN under `token`: nobody holds its lease */
	GOAL_ADOPT,     /* in a transaction of the caller's, which does the work itself */
};

/* How far it is. Only submission_move changes it, and only along the moves in submit.c. */
enum submission_state {
	SUBMISSION_TRIES, /* nothing stands: in a group, where it may */
	SUBMISSION_STEPS, /* by the steps: a group is not for this one */
	SUBMISSION_ANEW,  /* likewise, as a new command in the place of a row that has expired */
	SUBMISSION_HOLDS, /* the row is IN_PROGRESS under `token` */
	SUBMISSION_ENDED, /* its commit is durable */
	SUBMISSION_STATES
};

/* What a worker, or recovery, says of how a command ends that did not succeed. */
struct ending {
	enum command_state state;
	const char *reason, *text;
	int status;       /* 0: that of a handler that failed */
	const char *body; /* of a rejection: what is given back, byte for byte; NULL: a problem */
	const char *service_answer; /* of what is unknown: the service's own words; NULL: none */
};

/* What a command brings into a group, and gets out of it. */
struct sharing {
	struct group_member member; /* first */
	struct submission *sub;
	struct work_context context;
	struct ibid_work work; /* the member's values point into it */
	struct group_place place;
};

/* Everything one submit knows. */
struct submission {
	struct ledger *ledger;
	const struct operation *operation;
	const struct contract *contract;
	struct arena arena;   /* lives as long as the submit */
	struct arena attempt; /* emptied before each attempt */
	struct sender sender;
	struct identity identity;
	const char *correlation_id, *causation_id; /* "": none */
	const char *traceparent, *tracestate;      /* NULL: none */
	struct json *payload;                      /* NULL: not known any more (recovery) */
	const char *canonical;
	struct sha256 fingerprint;
	enum submission_state state;
	struct uuid id;        /* of a new command; a row that is run again keeps its own */
	int64_t now_us;        /* of the attempt */
	int64_t wait_until_us; /* how long it waits, or looks, for a twin's outcome; 0: not yet */
	int misses;            /* uniqueness was hit and nothing found */
	bool late;             /* what was lost may still arrive: no error says that nothing was done */

	/* What the previous attempt ended in and this one has to record; IBID_OK: nothing. */
	enum ibid_code pending;
	struct outcome outcome; /* in `arena` */

	/* Of a command that is staged. */
	enum goal goal;
	int64_t token; /* of the lease that is held, or to be taken over; 0: none */
	const struct action_record *by_person; /* who found out; NULL: no person did */
	struct {
		enum command_state state; /* as the worker, or recovery, said; COMMAND_ACCEPTED: not yet */
		const char *reason;
		int status;
		const char *body;
		const char *service_answer;
	} end;

	/* What runs: the operation's own, or what finishes a staged command. */
	const struct script *script;
	ibid_handler *handler;
	void *user;

	/* The course of attempts. */
	struct sharing sharing;
	group_served_fn *served; /* the callback of an asynchronous caller; NULL: a thread waits */
	int turns, collisions;
	int64_t pause_us;

	struct ibid_err lost; /* why the last commit did not report success; code IBID_OK: none */
	struct ibid_result *result;
};

void submission_init(struct submission *sub, struct ledger *ledger);
void submission_move(struct submission *sub, enum submission_state to);

/* From here on it finishes the command, under the token that it has. */
void submission_finishes(struct submission *sub);
void submission_release(struct submission *sub);

/* prepare.c: from what the caller sent to an identity and a fingerprint. Touches no store. */
IBID_CHECK enum ibid_code submission_prepare(struct submission *sub,
                                             const struct ibid_command *command,
                                             struct ibid_err *err);

/* Attempts until there is a decision, or until the lease is held. `*ret` may hold nothing then.
 * IBID_FENCED: the lease is somebody else's (I6). IBID_FAILED: what should finish the command
 * failed, and nothing was done. */
IBID_CHECK enum ibid_code submission_decide(struct submission *sub, struct ibid_result **ret,
                                            struct ibid_err *err);

/* The same in pieces, for callers that have no thread to wait in: submission_begin, then
 * submission_advance until ADVANCE_DECIDED or an error, then submission_close. */
enum advance {
	ADVANCE_DECIDED,
	ADVANCE_PAUSE,  /* advance again after `pause_us` */
	ADVANCE_QUEUED, /* with `served`: that is called, and submission_served is next */
};
IBID_CHECK enum ibid_code submission_begin(struct submission *sub, struct ibid_err *err);
IBID_CHECK enum ibid_code submission_advance(struct submission *sub, enum advance *ret,
                                             struct ibid_err *err);
IBID_CHECK enum ibid_code submission_served(struct submission *sub, enum group_part part,
                                            enum advance *ret, struct ibid_err *err);
IBID_CHECK enum ibid_code submission_close(struct submission *sub, enum ibid_code code,
                                           struct ibid_result **ret, struct ibid_err *err);

/* Say how a command that is held ends, without running anything. */
IBID_CHECK enum ibid_code submission_end(struct submission *sub, const struct ending *ending,
                                         struct ibid_result **ret, struct ibid_err *err);

/* The command as its worker sees it, in the submission's memory. */
IBID_CHECK enum ibid_code submission_view(struct submission *sub, struct ibid_work *ret,
                                          struct ibid_err *err);

/* Run a script as the work; codes as the store's run_script. */
enum ibid_code submission_run_script(struct ibid_work *work, const struct script *script,
                                     struct ibid_err *err);

/* ---- Judging and telling: judge.c ----------------------------------------------------------- */

/* What the row that is there means for this command. `*ret_fingerprint`: the command's, under the
 * row's contract version. */
IBID_CHECK enum ibid_code submission_judge(struct submission *sub, const struct command_row *row,
                                           enum verdict *ret, struct sha256 *ret_fingerprint,
                                           struct ibid_err *err);

/* What is kept of a conflict. */
struct key_conflict_row submission_evidence(const struct submission *sub,
                                            const struct command_row *row,
                                            const struct sha256 *fingerprint);

/* Put a verdict other than VERDICT_RUN... into the result, and count the duplicate. */
void submission_answer(struct submission *sub, enum verdict verdict, const struct command_row *row,
                       const struct sha256 *fingerprint);

/* Its parts: the outcome on the row; and the duplicate, beside the caller's path (B18). */
void submission_answer_replay(struct submission *sub, const struct command_row *row);
void submission_note(struct submission *sub, const struct command_row *row,
                     const struct sha256 *fingerprint);

/* Say in the result where what was made is found, by the contract version that made it (B03). */
IBID_CHECK enum ibid_code submission_locate(struct submission *sub, struct ibid_err *err);

/* A line about this command, with its ids and the hash of its key. */
void submission_log(const struct submission *sub, enum ibid_log_level level, const char *event,
                    const char *text);

/* The same about a failure of the server: with the incident that its row stands for. */
void submission_log_incident(const struct submission *sub, const char *event,
                             const struct command_row *row);

/* ---- Rows: rows.c --------------------------------------------------------------------------- */

/* The command that an attempt belongs to: the one on the row, where that goes on. */
const struct command_row *submission_continued(const struct submission *sub,
                                               const struct command_row *previous);

/* Has the worker, or recovery, said how it ends? */
static inline bool submission_has_end(const struct submission *sub)
{
	return sub->end.state != COMMAND_ACCEPTED;
}

/* Does it say how a staged command ends? */
bool submission_is_finishing(const struct submission *sub);

/* Whoever holds the lease of a command goes on with the run that began it. */
bool submission_holds_lease(const struct submission *sub);

/* The row of a run that begins now; where it is run anew, of a new command in the place of
 * `previous`.
 */
struct command_row submission_row(struct submission *sub, const struct command_row *previous);

/* Make it the row of a success, and say what goes with it. */
struct audit_row submission_complete(const struct submission *sub, struct command_row *row,
                                     const struct outcome *outcome, bool linked);

/* Make it the row of a refusal, as the contract says of the class. */
void submission_refuse(struct submission *sub, struct command_row *row, enum refusal_class class,
                       const struct outcome *outcome);

/* After a refusal of the payload: where nothing was accepted under the key yet, and the contract
 * lets it be corrected, the row leaves the key unbound (I2). */
void submission_unbind(const struct submission *sub, struct command_row *row,
                       const struct command_row *previous);

/* Make it the row of what `sub->end` says. */
void submission_set_end(const struct submission *sub, struct command_row *row);

/* What the contract keeps of a refusal. */
struct command_row submission_kept_refusal(const struct submission *sub,
                                           const struct command_row *row);

/* What the first caller hears of a success: the whole answer, whatever the contract keeps of it. */
struct command_row submission_whole_answer(const struct command_row *row,
                                           const struct outcome *outcome);

/* `code` of a callback, or IBID_MISUSE when it ended the transaction: what it did may be there. */
enum ibid_code submission_check_undo(struct ibid_work *work, enum ibid_code code,
                                     struct ibid_err *err);

/* recover.c: go on with the command of a row, whose payload is not known any more. */
void recovery_hold(struct submission *sub, const struct command_row *row);

/* recover.c: run the script that looks whether a command was done. Codes of a handler. */
enum ibid_code recovery_query(struct submission *sub, struct ibid_work *work, struct ibid_err *err);

#endif
