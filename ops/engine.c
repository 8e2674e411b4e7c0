/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The choice between two engines, and the kernel's part of a job.  See engine.h.
 *
 * To the library a part that the kernel does is a job of one thread whose chunks
 * are requests: so deadlines, progress and the result are the library's.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "engine.h"
#include "mapping.h"

/* Below this a job is over before a choice would pay for itself (our guess). */
#define LARGE_BYTES (64 * MIB)
/* A request of a job that may be cancelled: the least, and how long it takes. */
#define REQUEST_BYTES (16 * MIB)
#define REQUEST_US 20000
/* Chunks never cut a page of this size in the kernel. */
#define PAGE_MOST (2 * MIB)
/* As much faster must the kernel be to be chosen. */
#define WINS_PERCENT 105
#define LIMITS_MOST 32

enum choice { UNKNOWN, USER, KERNEL, NR_CHOICES };

static const char *const names[] = { "unknown", "user", "kernel" };

/* ---- what is known ---- */

static enum choice wish(void)
{
	const char *text = secure_getenv("KTASK_ENGINE");

	for (enum choice i = USER; text && i < NR_CHOICES; i++)
		if (!strcmp(text, names[i]))
			return i;
	return UNKNOWN;
}

static void name_of(char *name, size_t size, const struct ktask_op *op)
{
	snprintf(name, size, "%s.engine", op->name);
}

static enum choice learnt(const struct ktask_op *op, uint64_t *rate)
{
	struct ktask_learnt known = KTASK_LEARNT_INIT;
	char name[sizeof(known.name)];

	name_of(name, sizeof(name), op);
	*rate = 0;
	if (ktask_learnt_get(name, &known))
		return UNKNOWN;
	*rate = known.single_rate;
	return known.threads == USER ? USER : KERNEL;
}

static void learn(const struct ktask_op *op, enum choice choice, uint64_t rate)
{
	struct ktask_learnt found = KTASK_LEARNT_INIT;

	name_of(found.name, sizeof(found.name), op);
	found.threads = choice;
	found.max_threads = KERNEL;
	found.single_rate = rate;
	ktask_learnt_add(&found);
}

/* What policy allows a job here. */
static unsigned policy_threads(void)
{
	struct ktask_limit limits[LIMITS_MOST];
	unsigned nr = ktask_limits(limits, LIMITS_MOST);
	unsigned threads = UINT_MAX;

	for (unsigned i = 0; i < nr && i < LIMITS_MOST; i++)
		if (limits[i].threads < threads)
			threads = limits[i].threads;
	return threads;
}

/* The same, less the helpers that work already. */
static unsigned allowed_threads(unsigned wanted)
{
	struct ktask_slots_info slots;
	unsigned threads = policy_threads();

	if (wanted && wanted < threads)
		threads = wanted;
	ktask_jobs(NULL, 0, &slots);
	if (slots.used >= slots.limit)
		return 1;
	if (threads > 1 + slots.limit - slots.used)
		threads = 1 + slots.limit - slots.used;
	return threads;
}

/* ---- one job ---- */

static bool is_large(const struct op_job *job)
{
	return job->len >= LARGE_BYTES && job->align <= PAGE_MOST &&
	       job->opts->max_threads != 1 && !job->opts->flags;
}

/* From here on the user engine does what is left. */
static void give_up(struct engine *engine)
{
	device_close(engine->fd);
	engine->fd = -1;
}

void engine_begin(struct engine *engine, struct op_job *job)
{
	enum choice choice;
	uint64_t rate;

	*engine = (struct engine){ .fd = -1 };
	job->engine = engine;
	if (!is_large(job) || !device_may_be_there())
		return;
	/* The environment only here: other threads may be changing it. */
	choice = wish();
	if (choice == USER)
		return;
	engine->fd = device_open();
	if (engine->fd < 0)
		return;
	if (choice == UNKNOWN)
		choice = learnt(job->op, &rate);
	engine->kernel = choice == KERNEL;
	if (choice != USER)
		engine->max_threads = allowed_threads(job->opts->max_threads);
	if (engine->max_threads < 2)
		give_up(engine);
}

void engine_end(struct engine *engine, struct op_job *job)
{
	if (engine->fd >= 0)
		device_close(engine->fd);
	if (job->result && job->result->threads < engine->threads)
		job->result->threads = engine->threads;
	job->engine = NULL;
}

static bool is_in_use(const struct engine *engine)
{
	return engine && engine->fd >= 0;
}

static int request_chunk(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;
	struct engine *engine = job->engine;
	unsigned threads;
	int error;

	/* The one page that is made before the others, and what is left when
	 * the device has refused. */
	if (!job->running || !is_in_use(engine))
		return engine->plain(start, end, arg);
	error = device_populate(engine->fd, (uintptr_t)start, (uintptr_t)end,
				engine->write, engine->max_threads, &threads);
	if (!error) {
		if (engine->threads < threads)
			engine->threads = threads;
		return 0;
	}
	give_up(engine);
	/* Such a job tells its caller of what is done: it goes on with the rest. */
	return op_may_be_cancelled(job) ? engine->plain(start, end, arg)
					: error;
}

/* Return: false if the device refused; then nothing is in the result.  A job
 * that may be cancelled has one part only, and its errors are its own. */
static bool go_kernel(struct op_job *job, uintptr_t start, uintptr_t end,
		      int *error)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	bool own = op_may_be_cancelled(job);
	struct ktask_opts opts = *job->opts;
	struct op_job part = *job;

	opts.max_threads = 1;
	opts.chunk_us = REQUEST_US;
	part.opts = &opts;
	part.min_chunk = REQUEST_BYTES;
	part.result = own ? job->result : &result;
	*error = op_go_part(&part, start, end, request_chunk);
	if (*error && !own)
		return false;
	if (!own)
		op_add_result(job, &result);
	return true;
}

/* What was there already says nothing about making it. */
static bool is_untouched(uintptr_t start, uintptr_t end, uintptr_t step)
{
	for (uintptr_t pos = start; pos < end; pos += step)
		if (mapping_present((const char *)pos))
			return false;
	return true;
}

static void learn_from(const struct op_job *job, uint64_t bytes,
		       const uint64_t ns[NR_CHOICES], struct engine *engine)
{
	enum choice choice = KERNEL;

	if (!ns[USER] || !ns[KERNEL])
		return;
	if (ns[USER] * 100 < ns[KERNEL] * WINS_PERCENT)
		choice = USER;
	engine->kernel = choice == KERNEL;
	learn(job->op, choice,
	      (uint64_t)((double)bytes * 1e9 / (double)ns[choice]));
	if (choice == USER)
		give_up(engine);
}

/*
 * By turns, so that what changes meanwhile is shared.
 *
 * Return: 0, with *done set to what the trial has done; an error ends it.
 */
static int try_both(struct op_job *job, uintptr_t start, uintptr_t end,
		    uintptr_t *done)
{
	static const enum choice turns[] = { USER, KERNEL, KERNEL, USER };
	struct engine *engine = job->engine;
	uintptr_t step = (end - start) / 8 & ~(uintptr_t)(PAGE_MOST - 1);
	uint64_t ns[NR_CHOICES] = { 0 };
	int error = 0;

	*done = start;
	if (!is_untouched(start, start + 4 * step, step))
		return 0;
	for (unsigned i = 0; i < 4 && !error && is_in_use(engine); i++) {
		uint64_t begin_ns = op_now_ns();

		if (turns[i] == USER)
			error = op_go_part(job, *done, *done + step,
					   engine->plain);
		else if (!go_kernel(job, *done, *done + step, &error))
			return 0;
		ns[turns[i]] += op_now_ns() - begin_ns;
		*done += step;
	}
	if (!error)
		learn_from(job, 2 * step, ns, engine);
	return error;
}

int engine_go_part(struct op_job *job, uintptr_t start, uintptr_t end,
		   ktask_thread_func chunk, bool write)
{
	struct engine *engine = job->engine;
	int error = 0;

	if (!is_in_use(engine) || end - start < LARGE_BYTES)
		return op_go_part(job, start, end, chunk);
	engine->plain = chunk;
	engine->write = write;
	if (!engine->kernel && !op_may_be_cancelled(job))
		error = try_both(job, start, end, &start);
	if (error)
		return error;
	if (is_in_use(engine) && engine->kernel &&
	    go_kernel(job, start, end, &error))
		return error;
	return op_go_part(job, start, end, chunk);
}

/* ---- for people ---- */

static enum choice explain(const struct ktask_op *op, struct ktask_engine *told)
{
	enum choice wanted = wish(), known;
	int fd;

	if (wanted == USER) {
		snprintf(told->why, sizeof(told->why), "KTASK_ENGINE=user");
		return USER;
	}
	fd = device_open();
	if (fd < 0) {
		errno = -fd;
		snprintf(told->why, sizeof(told->why), DEVICE_PATH ": %m");
		return USER;
	}
	device_close(fd);
	if (policy_threads() < 2) {
		snprintf(told->why, sizeof(told->why),
			 "a job gets one thread here");
		return USER;
	}
	if (wanted == KERNEL) {
		snprintf(told->why, sizeof(told->why), "KTASK_ENGINE=kernel");
		return KERNEL;
	}
	known = learnt(op, &told->rate);
	snprintf(told->why, sizeof(told->why),
		 known == UNKNOWN ? "jobs of 64 MiB and more try both"
				  : "the faster of the two in earlier jobs");
	return known;
}

int ktask_op_engine(const struct ktask_op *op, struct ktask_engine *engine)
{
	int saved = errno;

	if (!op || !engine)
		return -EINVAL;
	if (!op->in_kernel)
		return -EOPNOTSUPP;
	memset(engine, 0, sizeof(*engine));
	engine->name = names[explain(op, engine)];
	errno = saved;
	return 0;
}
