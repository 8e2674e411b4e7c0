/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * While threads of a job are blocked in the kernel inside their chunks, others
 * work in their place: a job is not stopped by as many chunks that wait as it
 * has threads, errors of compensating helpers are undone as others', and afterwards no more
 * threads work than before.
 */
#include "jobs.h"
#include "support/work.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define UNITS 400
#define BLOCKERS 6
/* Chunks before the first one that blocks: the caller must have looked. */
#define FIRST 60

static int gate;
static unsigned nr_blocked, nr_done, nr_undone, given_up;
static uint32_t fail_behind;

static uint64_t deadline_ns;

static bool is_blocker(uintptr_t unit)
{
	return unit >= FIRST && unit < FIRST + BLOCKERS;
}

static unsigned add_one(unsigned *count)
{
	return __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
}

/*
 * Blocked until all other units are done: the last of them opens the gate.
 * Not for ever, so that a library without workers fails and ends.
 */
static void wait_at_gate(void)
{
	struct pollfd polled = { .fd = gate, .events = POLLIN };
	uint64_t word;
	int left_ms;

	add_one(&nr_blocked);
	while (read(gate, &word, sizeof(word)) < 0) {
		left_ms = (int)((int64_t)(deadline_ns - ktest_now_ns()) /
				1000000);
		if (left_ms <= 0 || poll(&polled, 1, left_ms) == 0) {
			add_one(&given_up);
			break;
		}
	}
}

static int wait_or_work(void *start, void *end, void *arg)
{
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++) {
		if (is_blocker(i))
			wait_at_gate();
		else
			nap_us(300);
		if (fail_behind && i >= fail_behind)
			return -EIO;
		if (add_one(&nr_done) == UNITS - BLOCKERS) {
			uint64_t all = BLOCKERS;

			assert_int_equal(write(gate, &all, sizeof(all)), 8);
		}
	}
	return 0;
}

static void count_undone(void *start, void *end, void *arg)
{
	__atomic_add_fetch(&nr_undone,
			   (unsigned)((uintptr_t)end - (uintptr_t)start),
			   __ATOMIC_SEQ_CST);
}

static bool others_run(void)
{
	FILE *file = fopen("/proc/loadavg", "r");
	long running = 0;

	if (file && fscanf(file, "%*s %*s %*s %ld/", &running) != 1)
		running = 0;
	if (file)
		fclose(file);
	return running > sysconf(_SC_NPROCESSORS_ONLN);
}

/* Of all CPUs, in ticks; 0 unknown. */
static unsigned long idle_ticks(void)
{
	FILE *file = fopen("/proc/stat", "r");
	unsigned long ticks = 0;

	if (file && fscanf(file, "cpu %*u %*u %*u %lu", &ticks) != 1)
		ticks = 0;
	if (file)
		fclose(file);
	return ticks;
}

/* At the beginning, at the end or in between: workers are of the lowest
 * priority. */
static bool was_overloaded;
static unsigned long idle_before;
static uint64_t begin_ns;

/* All CPUs together have idled for less than a tenth of the time. */
static bool idled_little(void)
{
	double passed_s = (double)(ktest_now_ns() - begin_ns) / 1e9;
	double idle_s = (double)(idle_ticks() - idle_before) /
			(double)sysconf(_SC_CLK_TCK);

	return idle_before && idle_s < passed_s / 10;
}

static bool is_overloaded(void)
{
	return was_overloaded || others_run() || idled_little();
}

static void open_gate(void)
{
	gate = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
	assert_true(gate >= 0);
	nr_blocked = nr_done = nr_undone = given_up = 0;
	fail_behind = 0;
	was_overloaded = others_run();
	idle_before = idle_ticks();
	begin_ns = ktest_now_ns();
	deadline_ns = ktest_now_ns() + 20000000000u;
}

static struct ktask_result run_job(struct ktask_ctl *ctl, int expected)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	int error;

	ktask_ctl_set_result(ctl, &result);
	/* One unit a chunk: none stands behind one that waits. */
	ktask_ctl_set_chunk_us(ctl, 1);
	error = ktask_run(NULL, UNITS, ctl);
	close(gate);
	if (error != expected && given_up && is_overloaded())
		ktest_skip("others use all CPUs");
	assert_int_equal(error, expected);
	return result;
}

/* More chunks wait for the end of the job than there are CPUs for threads. */
static void all_threads_may_block(void **state)
{
	DEFINE_KTASK_CTL(ctl, wait_or_work, NULL, 1);
	struct ktask_result result;

	need_sure_helper();
	open_gate();
	result = run_job(&ctl, 0);
	assert_int_equal(nr_blocked, BLOCKERS);
	if (given_up && is_overloaded())
		ktest_skip("others use all CPUs");
	assert_int_equal(given_up, 0);
	assert_int_equal(result.units, UNITS);
	assert_true(result.threads > BLOCKERS);
}

/* What the client allows holds for workers too. */
static void as_many_as_the_client_allows(void **state)
{
	DEFINE_KTASK_CTL(ctl, wait_or_work, NULL, 1);
	struct ktask_result result;

	need_sure_helper();
	ktask_ctl_set_max_threads(&ctl, 3);
	open_gate();
	deadline_ns = ktest_now_ns() + 300000000;
	result = run_job(&ctl, 0);
	assert_true(result.threads <= 3);
	ktask_ctl_set_fixed_threads(&ctl, 2);
	open_gate();
	deadline_ns = ktest_now_ns() + 300000000;
	result = run_job(&ctl, 0);
	assert_true(result.threads <= 2);
}

static void failures_are_undone(void **state)
{
	DEFINE_KTASK_CTL(ctl, wait_or_work, NULL, 1);
	struct ktask_result result;
	uint32_t behind;

	need_sure_helper();
	ktask_ctl_set_undo_func(&ctl, count_undone);
	for (behind = FIRST + BLOCKERS; behind < UNITS; behind += 50) {
		open_gate();
		deadline_ns = 0;
		fail_behind = behind;
		result = run_job(&ctl, -EIO);
		assert_int_equal(nr_undone, result.units);
	}
}

static pthread_t caller;

/* The caller and those that come first are blocked; who comes then fails. */
static int wait_or_fail(void *start, void *end, void *arg)
{
	uint64_t all = UNITS;

	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++) {
		if (i < FIRST) {
			nap_us(300);
		} else if (add_one(&nr_blocked) <= BLOCKERS ||
			   pthread_equal(pthread_self(), caller)) {
			wait_at_gate();
		} else {
			assert_int_equal(write(gate, &all, sizeof(all)), 8);
			return -EIO;
		}
	}
	return 0;
}

/* That of a worker is told as any other. */
static void failures_are_told(void **state)
{
	DEFINE_KTASK_CTL(ctl, wait_or_fail, NULL, 1);
	struct ktask_result result;

	need_sure_helper();
	caller = pthread_self();
	for (int n = 0; n < 3; n++) {
		open_gate();
		result = run_job(&ctl, -EIO);
		assert_int_equal(result.fail_error, -EIO);
		assert_true(result.fail_offset >= FIRST);
		assert_true((uintptr_t)result.fail_pos == result.fail_offset);
		assert_int_equal(result.nodes[0].units, result.units);
	}
}

/* All begin with a chunk that waits for the end of the job. */
static int wait_first(void *start, void *end, void *arg)
{
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++) {
		if (i < BLOCKERS)
			wait_at_gate();
		else if (add_one(&nr_done) == UNITS - BLOCKERS) {
			uint64_t all = BLOCKERS;

			assert_int_equal(write(gate, &all, sizeof(all)), 8);
		}
	}
	return 0;
}

static void first_chunks_may_block_where_that_was_said(void **state)
{
	DEFINE_KTASK_CTL(ctl, wait_first, NULL, 1);

	need_sure_helper();
	ktask_ctl_set_blocks(&ctl);
	open_gate();
	run_job(&ctl, 0);
	assert_int_equal(nr_blocked, BLOCKERS);
	if (given_up && is_overloaded())
		ktest_skip("others use all CPUs");
	assert_int_equal(given_up, 0);
}

/* What is seen only if a worker happens to work just then is looked for in so
 * many jobs. */
#define TRIES 20

static unsigned most_told, most_listed;

/* As progress is told, and as `ktask top` reads it. */
static int keep_most(const struct ktask_progress *progress, void *arg)
{
	struct ktask_job_info jobs[64] = { KTASK_JOB_INFO_INIT };
	unsigned i, nr = ktask_jobs(jobs, 64, NULL);

	if (progress->threads > most_told)
		most_told = progress->threads;
	for (i = 0; i < nr && i < 64; i++)
		if (jobs[i].pid == getpid() && jobs[i].helpers > most_listed)
			most_listed = jobs[i].helpers;
	return 0;
}

static int nap_units(void *start, void *end, void *arg)
{
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		nap_us(1000);
	return 0;
}

/* Helpers are listed, their caller is not. */
static bool were_told_of(void)
{
	return most_told > job_threads() && most_listed >= job_threads();
}

static void compensating_helpers_are_told_of(void **state)
{
	DEFINE_KTASK_CTL(ctl, nap_units, NULL, 1);
	bool overloaded = false;
	int tries;

	need_sure_helper();
	most_told = most_listed = 0;
	ktask_ctl_set_blocks(&ctl);
	ktask_ctl_set_progress(&ctl, keep_most, NULL, 1);
	for (tries = 0; tries < TRIES && !were_told_of(); tries++) {
		open_gate();
		run_job(&ctl, 0);
		overloaded |= is_overloaded();
	}
	if (!were_told_of() && overloaded)
		ktest_skip("others use all CPUs");
	assert_true(were_told_of());
}

/* ---- priorities ---- */

static unsigned nr_batch, nr_normal;

static int naps_and_tells(void *start, void *end, void *arg)
{
	if (!pthread_equal(pthread_self(), caller)) {
		add_one(sched_getscheduler(0) == SCHED_BATCH   ? &nr_batch
			: sched_getscheduler(0) == SCHED_OTHER ? &nr_normal
							       : &nr_done);
	}
	return nap_units(start, end, arg);
}

static bool is_helper(const char *tid)
{
	char path[300], name[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%15s", name) != 1)
		name[0] = '\0';
	if (file)
		fclose(file);
	return !strcmp(name, "ktask");
}

/* Helpers are as low as between jobs. */
static bool all_are_low(void)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");
	bool low = true;

	while (dir && (entry = readdir(dir))) {
		if (is_helper(entry->d_name))
			low &= sched_getscheduler(atoi(entry->d_name)) ==
			       SCHED_IDLE;
	}
	if (dir)
		closedir(dir);
	return low;
}

/* Who waits runs as SCHED_BATCH, and only as long. */
static void compensating_helpers_are_woken_where_it_is_idle(void **state)
{
	DEFINE_KTASK_CTL(ctl, naps_and_tells, NULL, 1);
	bool overloaded = false;
	int tries;

	need_sure_helper();
	caller = pthread_self();
	nr_batch = nr_normal = 0;
	ktask_ctl_set_blocks(&ctl);
	for (tries = 0; tries < TRIES && !nr_batch && !nr_normal; tries++) {
		open_gate();
		run_job(&ctl, 0);
		overloaded |= is_overloaded();
	}
	if (nr_normal)
		ktest_skip("helpers keep their priority here");
	if (!nr_batch && overloaded)
		ktest_skip("others use all CPUs");
	assert_true(nr_batch > 0);
	for (tries = 0; tries < 1000 && !all_are_low(); tries++)
		nap_us(5000);
	assert_true(all_are_low());
}

KTEST_MAIN(KTEST(all_threads_may_block), KTEST(as_many_as_the_client_allows),
	   KTEST(failures_are_undone), KTEST(failures_are_told),
	   KTEST(first_chunks_may_block_where_that_was_said),
	   KTEST(compensating_helpers_are_told_of),
	   KTEST(compensating_helpers_are_woken_where_it_is_idle))
