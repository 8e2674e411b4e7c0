/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs that keep count of every unit, and chunks of a chosen thread.
 *
 * A tally is the work of a job: how often each unit was done, less how often
 * it was undone.  A struct once runs a function in one chunk of the caller or
 * of a helper, in the middle of such a job.  Behaves badly where no helper is
 * to be had: once_run() then gives up, and the test should skip.
 */
#ifndef TEST_JOBS_H
#define TEST_JOBS_H

#include <stdbool.h>
#include <string.h>

#include <ktask/ktask.h>

#include "ktest.h"

#define TALLY_UNITS 2000
#define ONCE_SECONDS 20
/* How long a caller stays in its chunk for a helper that may not come. */
#define ONCE_STAY_NS 500000000ull

struct tally {
	int count[TALLY_UNITS];
};

static inline int tally_do(void *start, void *end, void *arg)
{
	struct tally *tally = arg;

	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		__atomic_add_fetch(&tally->count[i], 1, __ATOMIC_RELAXED);
	return 0;
}

static inline void tally_undo(void *start, void *end, void *arg)
{
	struct tally *tally = arg;

	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		__atomic_sub_fetch(&tally->count[i], 1, __ATOMIC_RELAXED);
}

/* tally_is - is the count of every unit @count? */
static inline bool tally_is(const struct tally *tally, int count)
{
	for (size_t i = 0; i < TALLY_UNITS; i++)
		if (__atomic_load_n(&tally->count[i], __ATOMIC_RELAXED) !=
		    count)
			return false;
	return true;
}

/* job_works - does a job of this thread do each unit once? */
static inline bool job_works(void)
{
	struct tally tally = { 0 };
	DEFINE_KTASK_CTL(ctl, tally_do, &tally, 10);

	return !ktask_run(NULL, TALLY_UNITS, &ctl) && tally_is(&tally, 1);
}

/* job_threads - threads that a job may have here at most */
static inline unsigned job_threads(void)
{
	struct ktask_limit limits[16] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 16);
	unsigned threads = UINT32_MAX;

	for (unsigned i = 0; i < nr && i < 16; i++)
		if (limits[i].threads < threads)
			threads = limits[i].threads;
	return threads;
}

struct once {
	struct tally tally; /* arg of the job; first */
	bool in_helper; /* where @func shall run */
	int (*func)(void *arg); /* what it returns, the chunk returns */
	void *arg;
	ktask_undo_func undo; /* tally_undo if NULL */
	/* With in_helper: while @func runs the caller is in its first chunk, and so
	 * in no code of the library. */
	bool caller_stays;

	/* Private. */
	pid_t caller;
	uint32_t begun, ended;
	uint32_t missed; /* the caller waited in vain: nobody will run @func */
};

/* once_begun - did the function run? */
static inline bool once_begun(struct once *once)
{
	return __atomic_load_n(&once->begun, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&once->missed, __ATOMIC_ACQUIRE);
}

static inline int once_call(struct once *once)
{
	int error = once->func(once->arg);

	__atomic_store_n(&once->ended, 1, __ATOMIC_RELEASE);
	return error;
}

/* Until the function has ended, or cannot begin any more. */
static inline void once_stay(struct once *once)
{
	uint64_t end_ns = ktest_now_ns() + ONCE_STAY_NS;

	while (!__atomic_load_n(&once->ended, __ATOMIC_ACQUIRE)) {
		usleep(100);
		if (ktest_now_ns() < end_ns ||
		    __atomic_exchange_n(&once->begun, 1, __ATOMIC_ACQ_REL))
			continue;
		__atomic_store_n(&once->missed, 1, __ATOMIC_RELEASE);
		return;
	}
}

/* Slow until then, so that the other thread finds something left to do. */
static inline int once_chunk(void *start, void *end, void *arg)
{
	struct once *once = arg;
	bool helper = gettid() != once->caller;
	int error = 0;

	for (uintptr_t i = (uintptr_t)start;
	     i < (uintptr_t)end &&
	     !__atomic_load_n(&once->begun, __ATOMIC_ACQUIRE);
	     i++) {
		if (helper == once->in_helper) {
			if (!__atomic_exchange_n(&once->begun, 1,
						 __ATOMIC_ACQ_REL))
				error = once_call(once);
		} else if (once->caller_stays) {
			once_stay(once);
		} else {
			usleep(100);
		}
	}
	if (!error)
		tally_do(start, end, &once->tally);
	return error;
}

static inline void once_reset(struct once *once)
{
	memset(&once->tally, 0, sizeof(once->tally));
	once->caller = gettid();
	once->begun = 0;
	once->ended = 0;
	once->missed = 0;
}

/*
 * once_run - jobs, until the function has run in one of them
 *
 * Return: what the last job returned; the tally is that job's.
 */
static inline int once_run(struct once *once)
{
	uint64_t end_ns = ktest_now_ns() + ONCE_SECONDS * 1000000000ull;
	DEFINE_KTASK_CTL(ctl, once_chunk, once, 1);
	int error;

	ktask_ctl_set_undo_func(&ctl, once->undo ? once->undo : tally_undo);
	do {
		once_reset(once);
		error = ktask_run(NULL, TALLY_UNITS, &ctl);
	} while (!error && !once_begun(once) && ktest_now_ns() < end_ns);
	return error;
}

/* once_need_helper - skip the test where no helper came */
#define once_need_helper(once)                                          \
	do {                                                            \
		if (!once_begun(once))                                  \
			ktest_skip("no helper came within %d s, of %u " \
				   "threads that a job may have",       \
				   ONCE_SECONDS, job_threads());        \
	} while (0)

#endif /* TEST_JOBS_H */
