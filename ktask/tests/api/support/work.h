/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs whose every unit is counted, for the tests of the job API: how often it
 * was done, how often undone, by whom.  Owns also: looking at the threads and
 * the children of this process.
 *
 * Positions are made-up addresses from WORK_BASE on; nothing is there.
 */
#ifndef TESTS_API_SUPPORT_WORK_H
#define TESTS_API_SUPPORT_WORK_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "ktest.h"

#include <ktask/ktask.h>

#include "user/pool/user_prio.h"

#define WORK_BASE ((char *)0x100000)
/* Only to end a test that hangs: nothing takes nearly that long. */
#define HANG_SECONDS 100
#define HANG_NS (HANG_SECONDS * 1000000000ull)

struct work;

/*
 * A chunk of @work, before its units count as done.  Return: 0, or what the
 * chunk shall fail with.
 */
typedef int work_also_fn(struct work *work, size_t from, size_t to);

struct work {
	size_t nr_units;
	work_also_fn *also; /* or NULL */
	void *arg; /* for also */
	/* The caller and a helper must both be in a chunk before either may
	 * leave its first one: -ETIME after a while, should none come. */
	bool meet;
	unsigned patience_us; /* how long a while is; 0: HANG_SECONDS */

	pid_t caller; /* whoever called work_begin() */
	uint8_t *done, *undone; /* times, by unit */
	uint32_t nr_chunks, nr_helper_chunks;
	uint32_t here[2]; /* caller, helper: is in a chunk */
	char *undo_end; /* of the last undone range */
	bool undo_disorder;
};

/* work_begin - set all counts to 0; the calling thread is the caller */
void work_begin(struct work *work, size_t nr_units);
void work_end(struct work *work);

/* What a control block needs: the work is its func_arg. */
int work_chunk(void *start, void *end, void *arg);
void work_undo(void *start, void *end, void *arg);

/* work_ctl - a control block for @work with undo */
struct ktask_ctl work_ctl(struct work *work, size_t min_chunk);

/* work_run - ktask_run() over all units with work_ctl(..., 1) */
int work_run(struct work *work);

/* work_done_once - each unit was done once and none undone */
bool work_done_once(const struct work *work);

/* work_undone_exactly - each unit was undone as often as done, at most once,
 * in ascending order; @nr_done: set to units that were done, or NULL */
bool work_undone_exactly(const struct work *work, size_t *nr_done);

/*
 * work_met - jobs of a few chunks, until caller and helper meet in one
 *
 * A helper may be refused for a moment: its permit is another process's.
 *
 * Return: 0, a job's error, or -ETIME when no helper came at all.
 */
int work_met(void);

bool work_is_helper(const struct work *work);

/* may_help - would a job have a helper now?  If not, the reason is printed. */
bool may_help(void);

#define need_helper()            \
	do {                     \
		if (!may_help()) \
			skip();  \
	} while (0)

/* forget_overload - jobs begin with helpers although one of this process starved, as
 * beside much other work: a caller in a chunk could not call them later */
void forget_overload(void);

/* Without the right to lend a helper comes only while a CPU idles, which is
 * not sure at any moment on any machine. */
#define need_sure_helper()                                               \
	do {                                                             \
		if (!prio_may_lend())                                    \
			ktest_skip("helpers come only while CPUs idle"); \
		need_helper();                                           \
		forget_overload();                                       \
	} while (0)

/* The same, and this thread has the policy SCHED_OTHER to lend. */
#define need_lent_helper()                                              \
	do {                                                            \
		need_sure_helper();                                     \
		if (sched_getscheduler(0) != SCHED_OTHER)               \
			ktest_skip("this test runs at another policy"); \
	} while (0)

/* burn_us - use CPU time of this thread */
void burn_us(unsigned us);

/* nap_us - sleep */
void nap_us(unsigned us);

/* wait_for_flag - until *@flag is not 0; false when that hangs */
bool wait_for_flag(const uint32_t *flag);
bool wait_for_flag_us(const uint32_t *flag, uint64_t us);
void set_flag(uint32_t *flag);

/* threads_now - of this process; of them named "ktask": helpers_now() */
unsigned threads_now(void);
unsigned helpers_now(pid_t *tids, unsigned capacity);

/* status_field - a line of /proc/self/task/@tid/status, after "Name:\t" */
bool status_field(pid_t tid, const char *name, char *value, size_t size);

/* thread_sleeps - is thread @tid of this process blocked, and not waiting for a CPU? */
bool thread_sleeps(pid_t tid);

/* child_status - wait for @pid; kills it and returns -1 when it hangs */
int child_status(pid_t pid);

#endif /* TESTS_API_SUPPORT_WORK_H */
