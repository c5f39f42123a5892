/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c -- what is to be done next, and the threads that do it.
 *
 * (C1) A task is in one place: ready, resting until its time, in a group's queue, or in the hands
 * of one thread. (C2) Who must lead a lane goes before tasks: it serves many. (C3) The workers's
 * lock is the innermost one: nothing is called under it. (C4) While anything waits and a thread
 * sleeps, one is being woken, and never two at once: it wakes the next when there is more than it
 * takes. */
#include "command/worker_pool.h"

#include "base/steady.h"
#include "command/staged.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TENANT_QUEUES = 64 }; /* tenants by hash: those that share a queue share its turns */

struct task {
	struct submission own;      /* first: a group's member leads to its task */
	struct ibid_staged *staged; /* whose submission is used instead; NULL: none */
	struct worker_pool *workers;
	struct ibid_command command;
	worker_pool_done *done;
	worker_pool_staged *done_staged;
	worker_fn *call; /* instead of a command; NULL: none */
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

struct worker_pool {
	struct ledger *ledger;
	worker_fn *after; /* NULL: nobody is to be told */
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

/* The workers that the calling thread belongs to. */
static _Thread_local const struct worker_pool *own_workers;

/* ---- Ready, resting, leading ---------------------------------------------------------------- */

/* Every unlock of the workers's lock, but those of sleep. Whoever comes in a crowd wakes one
 * thread, not one each: waking costs more than a task does until it waits for its group. And it is
 * woken when it finds the lock free. */
static void unlock(struct worker_pool *workers)
{
	bool early = workers->resting && workers->resting->due_us < workers->alarm_us;
	bool wakes = workers->asleep && !workers->waking &&
	             (workers->waiting || workers->lane_count || early);
	workers->waking |= wakes;
	pthread_mutex_unlock(&workers->lock);
	if (wakes)
		pthread_cond_signal(&workers->work);
}

static void make_ready(struct worker_pool *workers, struct task *task)
{
	struct queue *queue = &workers->queues[task->queue];
	task->next = NULL;
	*queue->last = task;
	queue->last = &task->next;
	workers->waiting |= UINT64_C(1) << task->queue;
}

static void make_rest(struct worker_pool *workers, struct task *task)
{
	struct task **at = &workers->resting;
	while (*at && (*at)->due_us <= task->due_us)
		at = &(*at)->next;
	task->next = *at;
	*at = task;
}

/* The next queue behind the one that was served last (K10). */
static struct task *take_ready(struct worker_pool *workers)
{
	if (!workers->waiting)
		return NULL;
	unsigned shift = (workers->turn + 1) % TENANT_QUEUES;
	uint64_t turned = workers->waiting >> shift | (shift ? workers->waiting << (64 - shift) : 0);
	unsigned at = (shift + (unsigned)__builtin_ctzll(turned)) % TENANT_QUEUES;
	struct queue *queue = &workers->queues[at];
	struct task *task = queue->first;
	queue->first = task->next;
	if (!queue->first) {
		queue->last = &queue->first;
		workers->waiting &= ~(UINT64_C(1) << at);
	}
	workers->turn = at;
	return task;
}

/* Called under the lane's lock. */
static void lead_lane(void *user, struct lane *lane)
{
	struct worker_pool *workers = user;
	pthread_mutex_lock(&workers->lock);
	assert(workers->lane_count < GROUP_LANES); /* a lane has one who works for it */
	workers->lanes[workers->lane_count++] = lane;
	unlock(workers);
}

/* ---- One task ------------------------------------------------------------------------------- */

static void leave(struct task *task)
{
	struct worker_pool *workers = task->workers;
	pthread_mutex_lock(&workers->lock);
	workers->tasks--;
	workers->queues[task->queue].count--;
	if (!workers->tasks)
		pthread_cond_broadcast(&workers->idle);
	unlock(workers);
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
		sub->served = NULL; /* whoever ends it has a thread */
		code = staged_decided(task->staged, code, result, &held, &result, err);
		task->done_staged(task->user, code, held, code ? NULL : result, err);
	} else {
		submission_release(sub);
		task->done(task->user, code, result, err);
	}
	/* A thread that led a group and is none of the workers's has no other moment for it. */
	if (task->workers->after && own_workers != task->workers)
		task->workers->after(task->workers->after_user);
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
static void answer(struct group_place *place, enum group_part part)
{
	struct sharing *sharing = (struct sharing *)place->member;
	struct task *task = (struct task *)sharing->sub;
	struct worker_pool *workers = task->workers;
	task->part = part;
	if (part == GROUP_ALONE || sharing->member.done) {
		run_task(task);
		return;
	}
	pthread_mutex_lock(&workers->lock);
	make_ready(workers, task);
	unlock(workers);
}

static void run_task(struct task *task)
{
	struct worker_pool *workers = task->workers;
	struct ibid_err err = {0};
	enum advance advance = ADVANCE_DECIDED;
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
		code = submission_served(sub, part, &advance, &err);
	else if (!code)
		code = submission_advance(sub, &advance, &err);
	if (code || advance == ADVANCE_DECIDED) {
		end_task(task, code, &err);
	} else if (advance == ADVANCE_PAUSE) {
		pthread_mutex_lock(&workers->lock);
		task->due_us = env_steady_us(workers->ledger->env) + sub->pause_us;
		make_rest(workers, task);
		unlock(workers);
	} /* else it is in a group, or already in other hands */
}

static void assign(struct task *task, struct worker_pool *workers, const char *tenant)
{
	task->workers = workers;
	task->part = GROUP_WAITS;
	task->queue = (unsigned)(group_contention(tenant ? tenant : "", NULL, 0) % TENANT_QUEUES);
}

/* Onto its way, unless too many are. */
static enum ibid_code admit(struct worker_pool *workers, struct task *task, const char *tenant,
                            struct ibid_err *err)
{
	assign(task, workers, tenant);
	pthread_mutex_lock(&workers->lock);
	struct queue *queue = &workers->queues[task->queue];
	bool full = workers->tasks >= workers->tasks_max ||
	            queue->count >= (workers->tasks_max + 1) / 2;
	if (!full) {
		workers->tasks++;
		queue->count++;
		make_ready(workers, task);
	}
	unlock(workers);
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

enum ibid_code worker_pool_submit(struct worker_pool *workers, const struct ibid_command *command,
                                  worker_pool_done *done, void *user, struct ibid_err *err)
{
	struct task *task = task_new(command, user);
	if (!task)
		return err_set(err, IBID_NOMEM, "out of memory");
	submission_init(&task->own, workers->ledger);
	task->own.served = answer;
	task->done = done;
	return admit(workers, task, command->tenant, err);
}

enum ibid_code worker_pool_stage(struct worker_pool *workers, const struct ibid_command *command,
                                 worker_pool_staged *done, void *user, struct ibid_err *err)
{
	struct task *task = task_new(command, user);
	if (task)
		task->staged = staged_new(workers->ledger);
	if (!task || !task->staged) {
		free(task);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	task->staged->sub.served = answer; /* it waits without a thread, though never in a group */
	task->done_staged = done;
	return admit(workers, task, command->tenant, err);
}

enum ibid_code worker_pool_call(struct worker_pool *workers, const char *tenant, worker_fn *call,
                                void *user, struct ibid_err *err)
{
	struct task *task = calloc(1, sizeof *task);
	if (!task)
		return err_set(err, IBID_NOMEM, "out of memory");
	task->call = call;
	task->user = user;
	return admit(workers, task, tenant, err);
}

enum ibid_code worker_pool_call_later(struct worker_pool *workers, const char *tenant,
                                      int64_t pause_us, worker_fn *call, void *user,
                                      struct ibid_err *err)
{
	struct task *task = calloc(1, sizeof *task);
	if (!task)
		return err_set(err, IBID_NOMEM, "out of memory");
	task->call = call;
	task->user = user;
	assign(task, workers, tenant);
	task->due_us = env_steady_us(workers->ledger->env) + pause_us;
	pthread_mutex_lock(&workers->lock);
	workers->tasks++;
	workers->queues[task->queue].count++;
	if (pause_us)
		make_rest(workers, task);
	else
		make_ready(workers, task);
	unlock(workers);
	return IBID_OK;
}

void worker_pool_after(struct worker_pool *workers, worker_fn *after, void *user)
{
	pthread_mutex_lock(&workers->lock);
	workers->after = after;
	workers->after_user = user;
	unlock(workers);
}

size_t worker_pool_busy(struct worker_pool *workers)
{
	pthread_mutex_lock(&workers->lock);
	size_t busy = workers->tasks;
	unlock(workers);
	return busy;
}

/* ---- Threads -------------------------------------------------------------------------------- */

/* Who has rested long enough is ready. */
static void wake_rested(struct worker_pool *workers)
{
	int64_t now_us = workers->resting ? env_steady_us(workers->ledger->env) : 0;
	while (workers->resting && workers->resting->due_us <= now_us) {
		struct task *task = workers->resting;
		workers->resting = task->next;
		make_ready(workers, task);
	}
}

/* Until there is something to do, as far as one can tell. */
static void sleep_on(struct worker_pool *workers)
{
	workers->asleep++;
	if (workers->resting) {
		int64_t most_us = workers->resting->due_us - env_steady_us(workers->ledger->env);
		struct timespec until = steady_after(most_us > 0 ? most_us : 0);
		workers->alarm_us = workers->resting->due_us;
		(void)pthread_cond_timedwait(&workers->work, &workers->lock, &until);
		workers->alarm_us = INT64_MAX;
	} else {
		pthread_cond_wait(&workers->work, &workers->lock);
	}
	workers->asleep--;
	workers->waking = false;
}

static void *work(void *user)
{
	struct worker_pool *workers = user;
	own_workers = workers;
	pthread_mutex_lock(&workers->lock);
	for (;;) {
		wake_rested(workers);
		struct lane *lane = workers->lane_count ? workers->lanes[--workers->lane_count] : NULL;
		struct task *task = lane ? NULL : take_ready(workers);
		if (!lane && !task) {
			if (workers->ends)
				break;
			sleep_on(workers);
			continue;
		}
		unlock(workers);
		if (lane)
			group_lead(lane);
		else
			run_task(task);
		if (workers->after)
			workers->after(workers->after_user);
		pthread_mutex_lock(&workers->lock);
	}
	unlock(workers);
	return NULL;
}

enum ibid_code worker_pool_new(struct ledger *ledger, unsigned threads, unsigned tasks_max,
                               struct worker_pool **ret, struct ibid_err *err)
{
	struct worker_pool *workers = calloc(1, sizeof *workers + threads * sizeof workers->threads[0]);
	if (!workers)
		return err_set(err, IBID_NOMEM, "out of memory");
	workers->ledger = ledger;
	workers->tasks_max = tasks_max;
	workers->alarm_us = INT64_MAX;
	pthread_mutex_init(&workers->lock, NULL);
	steady_cond_init(&workers->work);
	pthread_cond_init(&workers->idle, NULL);
	for (size_t i = 0; i < TENANT_QUEUES; i++)
		workers->queues[i].last = &workers->queues[i].first;
	group_serve(ledger->group, lead_lane, workers);
	while (workers->thread_count < threads &&
	       !pthread_create(&workers->threads[workers->thread_count], NULL, work, workers))
		workers->thread_count++;
	if (workers->thread_count < threads) {
		worker_pool_free(workers);
		return err_set(err, IBID_NOMEM, "can't start %u threads", threads);
	}
	*ret = workers;
	return IBID_OK;
}

void worker_pool_free(struct worker_pool *workers)
{
	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	while (workers->tasks)
		pthread_cond_wait(&workers->idle, &workers->lock);
	workers->ends = true;
	pthread_cond_broadcast(&workers->work);
	pthread_mutex_unlock(&workers->lock);
	for (size_t i = 0; i < workers->thread_count; i++)
		pthread_join(workers->threads[i], NULL);
	pthread_cond_destroy(&workers->work);
	pthread_cond_destroy(&workers->idle);
	pthread_mutex_destroy(&workers->lock);
	free(workers);
}
