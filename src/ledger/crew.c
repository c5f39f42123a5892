/* SPDX-License-Identifier: Apache-2.0 */
/* crew.c -- what is to be done next, and the threads that do it.
 *
 * (C1) A task is in one place: ready, resting until its time, in a group's queue, or in the hands
 * of one thread. (C2) Who must lead a lane goes before tasks: it serves many. (C3) The crew's lock
 * is the innermost one: nothing is called under it. (C4) While anything waits and a thread sleeps,
 * one is being woken, and never two at once: it wakes the next when there is more than it takes. */
#include "ledger/crew.h"

#include "base/steady.h"
#include "ledger/staged.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TENANT_QUEUES = 64 }; /* tenants by hash: those that share a queue share its turns */

struct task {
	struct submission own;      /* first: a group's member leads to its task */
	struct ibid_staged *staged; /* whose submission is used instead; NULL: none */
	struct crew *crew;
	struct ibid_command command;
	crew_done *done;
	crew_staged *done_staged;
	crew_fn *call; /* instead of a command; NULL: none */
	void *user;
	unsigned queue;       /* its tenant's */
	bool prepared;        /* its first step was taken */
	enum group_part part; /* GROUP_WAITS: it was in no group; else what the group said */
	int64_t due_us;       /* resting: until then */
	struct task *next;
};

struct queue {
	struct task *first, **last;
	size_t count; /* tasks of its tenants on their way, wherever they are */
};

struct crew {
	struct ledger *ledger;
	crew_fn *after; /* NULL: nobody is to be told */
	void *after_user;
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	size_t tasks, tasks_max;
	struct queue queues[TENANT_QUEUES];
	uint64_t waiting;     /* a bit for each queue that has a ready task */
	unsigned turn;        /* the queue that was served last */
	struct task *resting; /* by time */
	struct lane *lanes[GROUP_LANES];
	size_t lane_count;
	size_t asleep;    /* threads */
	int64_t alarm_us; /* when one of them wakes by itself, for who rests; INT64_MAX: none does */
	bool waking;      /* one of them is called, and does not run yet */
	bool ends;
	size_t thread_count;
	pthread_t threads[];
};

/* The crew that the calling thread belongs to. */
static _Thread_local const struct crew *own_crew;

/* ---- Ready, resting, leading ---------------------------------------------------------------- */

/* Every unlock of the crew's lock, but those of sleep. Whoever comes in a crowd wakes one thread,
 * not one each: waking costs more than a task does until it waits for its group. And it is woken
 * when it finds the lock free. */
static void unlock(struct crew *crew)
{
	bool early = crew->resting && crew->resting->due_us < crew->alarm_us;
	bool wakes = crew->asleep && !crew->waking && (crew->waiting || crew->lane_count || early);
	crew->waking |= wakes;
	pthread_mutex_unlock(&crew->lock);
	if (wakes)
		pthread_cond_signal(&crew->work);
}

static void make_ready(struct crew *crew, struct task *task)
{
	struct queue *queue = &crew->queues[task->queue];
	task->next = NULL;
	*queue->last = task;
	queue->last = &task->next;
	crew->waiting |= UINT64_C(1) << task->queue;
}

static void make_rest(struct crew *crew, struct task *task)
{
	struct task **at = &crew->resting;
	while (*at && (*at)->due_us <= task->due_us)
		at = &(*at)->next;
	task->next = *at;
	*at = task;
}

/* The next queue behind the one that was served last (K10). */
static struct task *take_ready(struct crew *crew)
{
	if (!crew->waiting)
		return NULL;
	unsigned shift = (crew->turn + 1) % TENANT_QUEUES;
	uint64_t turned = crew->waiting >> shift | (shift ? crew->waiting << (64 - shift) : 0);
	unsigned at = (shift + (unsigned)__builtin_ctzll(turned)) % TENANT_QUEUES;
	struct queue *queue = &crew->queues[at];
	struct task *task = queue->first;
	queue->first = task->next;
	if (!queue->first) {
		queue->last = &queue->first;
		crew->waiting &= ~(UINT64_C(1) << at);
	}
	crew->turn = at;
	return task;
}

/* Called under the lane's lock. */
static void lead_lane(void *user, struct lane *lane)
{
	struct crew *crew = user;
	pthread_mutex_lock(&crew->lock);
	assert(crew->lane_count < GROUP_LANES); /* a lane has one who works for it */
	crew->lanes[crew->lane_count++] = lane;
	unlock(crew);
}

/* ---- One task ------------------------------------------------------------------------------- */

static void leave(struct task *task)
{
	struct crew *crew = task->crew;
	pthread_mutex_lock(&crew->lock);
	crew->tasks--;
	crew->queues[task->queue].count--;
	if (!crew->tasks)
		pthread_cond_broadcast(&crew->idle);
	unlock(crew);
	free(task);
}

static struct submission *submission_of(struct task *task)
{
	return task->staged ? &task->staged->sub : &task->own;
}

static void end_task(struct task *task, enum ibid_code code, struct ibid_err *err)
{
	struct submission *sub = submission_of(task);
	struct ibid_result *result = NULL;
	struct ibid_staged *held = NULL;
	if (sub->result)
		code = submission_close(sub, code, &result, err);
	if (task->staged) {
		sub->told = NULL; /* whoever ends it has a thread */
		code = staged_decided(task->staged, code, result, &held, &result, err);
		task->done_staged(task->user, code, held, code ? NULL : result, err);
	} else {
		submission_release(sub);
		task->done(task->user, code, result, err);
	}
	/* A thread that led a group and is none of the crew's has no other moment for it. */
	if (task->crew->after && own_crew != task->crew)
		task->crew->after(task->crew->after_user);
	leave(task);
}

static enum ibid_code begin(struct task *task, struct ibid_err *err)
{
	struct submission *sub = submission_of(task);
	enum ibid_code code = task->staged ? staged_prepare(task->staged, &task->command, err)
	                                   : submission_prepare(sub, &task->command, err);
	return code ? code : submission_begin(sub, err);
}

static void run_task(struct task *task);

/* The group's leader tells: what is plainly decided is told to the caller at once. Alone: the lane
 * waits for this one, and the thread is there to run it. */
static void told(struct group_place *place, enum group_part part)
{
	struct sharing *sharing = (struct sharing *)place->member;
	struct task *task = (struct task *)sharing->sub;
	struct crew *crew = task->crew;
	task->part = part;
	if (part == GROUP_ALONE || sharing->member.done) {
		run_task(task);
		return;
	}
	pthread_mutex_lock(&crew->lock);
	make_ready(crew, task);
	unlock(crew);
}

static void run_task(struct task *task)
{
	struct crew *crew = task->crew;
	struct ibid_err err = {0};
	enum pace pace = PACE_DECIDED;
	enum ibid_code code = IBID_OK;
	enum group_part part = task->part;
	struct submission *sub = submission_of(task);
	if (task->call) {
		task->call(task->user);
		leave(task);
		return;
	}
	if (!task->prepared)
		code = begin(task, &err);
	task->prepared = true;
	task->part = GROUP_WAITS;
	if (!code && part != GROUP_WAITS)
		code = submission_served(sub, part, &pace, &err);
	else if (!code)
		code = submission_advance(sub, &pace, &err);
	if (code || pace == PACE_DECIDED) {
		end_task(task, code, &err);
	} else if (pace == PACE_PAUSE) {
		pthread_mutex_lock(&crew->lock);
		task->due_us = env_steady_us(crew->ledger->env) + sub->pause_us;
		make_rest(crew, task);
		unlock(crew);
	} /* else it is in a group, or already in other hands */
}

static void assign(struct task *task, struct crew *crew, const char *tenant)
{
	task->crew = crew;
	task->part = GROUP_WAITS;
	task->queue = (unsigned)(group_contention(tenant ? tenant : "", NULL, 0) % TENANT_QUEUES);
}

/* Onto its way, unless too many are. */
static enum ibid_code admit(struct crew *crew, struct task *task, const char *tenant,
                            struct ibid_err *err)
{
	assign(task, crew, tenant);
	pthread_mutex_lock(&crew->lock);
	struct queue *queue = &crew->queues[task->queue];
	bool full = crew->tasks >= crew->tasks_max || queue->count >= (crew->tasks_max + 1) / 2;
	if (!full) {
		crew->tasks++;
		queue->count++;
		make_ready(crew, task);
	}
	unlock(crew);
	if (!full)
		return IBID_OK;
	ibid_staged_free(task->staged);
	free(task);
	return err_set(err, IBID_BUSY,
	               "too many commands wait already; nothing was done: send it again with the same "
	               "key, later");
}

static struct task *task_new(const struct ibid_command *command, void *user)
{
	struct task *task = calloc(1, sizeof *task);
	if (!task)
		return NULL;
	memcpy(&task->command, command,
	       command->size < sizeof task->command ? command->size : sizeof task->command);
	task->user = user;
	return task;
}

enum ibid_code crew_submit(struct crew *crew, const struct ibid_command *command, crew_done *done,
                           void *user, struct ibid_err *err)
{
	struct task *task = task_new(command, user);
	if (!task)
		return err_set(err, IBID_NOMEM, "out of memory");
	submission_init(&task->own, crew->ledger);
	task->own.told = told;
	task->done = done;
	return admit(crew, task, command->tenant, err);
}

enum ibid_code crew_stage(struct crew *crew, const struct ibid_command *command, crew_staged *done,
                          void *user, struct ibid_err *err)
{
	struct task *task = task_new(command, user);
	if (task)
		task->staged = staged_new(crew->ledger);
	if (!task || !task->staged) {
		free(task);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	task->staged->sub.told = told; /* it waits without a thread, though never in a group */
	task->done_staged = done;
	return admit(crew, task, command->tenant, err);
}

enum ibid_code crew_call(struct crew *crew, const char *tenant, crew_fn *call, void *user,
                         struct ibid_err *err)
{
	struct task *task = calloc(1, sizeof *task);
	if (!task)
		return err_set(err, IBID_NOMEM, "out of memory");
	task->call = call;
	task->user = user;
	return admit(crew, task, tenant, err);
}

enum ibid_code crew_call_later(struct crew *crew, const char *tenant, int64_t pause_us,
                               crew_fn *call, void *user, struct ibid_err *err)
{
	struct task *task = calloc(1, sizeof *task);
	if (!task)
		return err_set(err, IBID_NOMEM, "out of memory");
	task->call = call;
	task->user = user;
	assign(task, crew, tenant);
	task->due_us = env_steady_us(crew->ledger->env) + pause_us;
	pthread_mutex_lock(&crew->lock);
	crew->tasks++;
	crew->queues[task->queue].count++;
	if (pause_us)
		make_rest(crew, task);
	else
		make_ready(crew, task);
	unlock(crew);
	return IBID_OK;
}

void crew_after(struct crew *crew, crew_fn *after, void *user)
{
	pthread_mutex_lock(&crew->lock);
	crew->after = after;
	crew->after_user = user;
	unlock(crew);
}

size_t crew_busy(struct crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	size_t busy = crew->tasks;
	unlock(crew);
	return busy;
}

/* ---- Threads -------------------------------------------------------------------------------- */

/* Who has rested long enough is ready. */
static void wake_rested(struct crew *crew)
{
	int64_t now_us = crew->resting ? env_steady_us(crew->ledger->env) : 0;
	while (crew->resting && crew->resting->due_us <= now_us) {
		struct task *task = crew->resting;
		crew->resting = task->next;
		make_ready(crew, task);
	}
}

/* Until there is something to do, as far as one can tell. */
static void sleep_on(struct crew *crew)
{
	crew->asleep++;
	if (crew->resting) {
		int64_t most_us = crew->resting->due_us - env_steady_us(crew->ledger->env);
		struct timespec until = steady_after(most_us > 0 ? most_us : 0);
		crew->alarm_us = crew->resting->due_us;
		(void)pthread_cond_timedwait(&crew->work, &crew->lock, &until);
		crew->alarm_us = INT64_MAX;
	} else {
		pthread_cond_wait(&crew->work, &crew->lock);
	}
	crew->asleep--;
	crew->waking = false;
}

static void *work(void *user)
{
	struct crew *crew = user;
	own_crew = crew;
	pthread_mutex_lock(&crew->lock);
	for (;;) {
		wake_rested(crew);
		struct lane *lane = crew->lane_count ? crew->lanes[--crew->lane_count] : NULL;
		struct task *task = lane ? NULL : take_ready(crew);
		if (!lane && !task) {
			if (crew->ends)
				break;
			sleep_on(crew);
			continue;
		}
		unlock(crew);
		if (lane)
			group_lead(lane);
		else
			run_task(task);
		if (crew->after)
			crew->after(crew->after_user);
		pthread_mutex_lock(&crew->lock);
	}
	unlock(crew);
	return NULL;
}

enum ibid_code crew_new(struct ledger *ledger, unsigned threads, unsigned tasks_max,
                        struct crew **ret, struct ibid_err *err)
{
	struct crew *crew = calloc(1, sizeof *crew + threads * sizeof crew->threads[0]);
	if (!crew)
		return err_set(err, IBID_NOMEM, "out of memory");
	crew->ledger = ledger;
	crew->tasks_max = tasks_max;
	crew->alarm_us = INT64_MAX;
	pthread_mutex_init(&crew->lock, NULL);
	steady_cond_init(&crew->work);
	pthread_cond_init(&crew->idle, NULL);
	for (size_t i = 0; i < TENANT_QUEUES; i++)
		crew->queues[i].last = &crew->queues[i].first;
	group_serve(ledger->group, lead_lane, crew);
	while (crew->thread_count < threads &&
	       !pthread_create(&crew->threads[crew->thread_count], NULL, work, crew))
		crew->thread_count++;
	if (crew->thread_count < threads) {
		crew_free(crew);
		return err_set(err, IBID_NOMEM, "can't start %u threads", threads);
	}
	*ret = crew;
	return IBID_OK;
}

void crew_free(struct crew *crew)
{
	if (!crew)
		return;
	pthread_mutex_lock(&crew->lock);
	while (crew->tasks)
		pthread_cond_wait(&crew->idle, &crew->lock);
	crew->ends = true;
	pthread_cond_broadcast(&crew->work);
	pthread_mutex_unlock(&crew->lock);
	for (size_t i = 0; i < crew->thread_count; i++)
		pthread_join(crew->threads[i], NULL);
	pthread_cond_destroy(&crew->work);
	pthread_cond_destroy(&crew->idle);
	pthread_mutex_destroy(&crew->lock);
	free(crew);
}
