/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whoever asks how many permits are used is told of one moment, and never of more
 * than the limit: a permit that goes from one helper to another is counted once,
 * and so is a helper that ends its chunk after its permit went to another.  Of each
 * job only helpers that have a permit are listed.
 */
#define ONE_PERMIT_USER 65528u
#include "support/onepermit.h"
#include "syscalls.h"

#include <pthread.h>

#include "core/deps.h"

/* Threads that live. */
#define FIRST 1u
#define SECOND ((uint32_t)getppid())

static unsigned permits_in_use(void)
{
	struct ktask_permits_info info = KTASK_PERMITS_INFO_INIT;

	ktask_jobs(NULL, 0, &info);
	return info.used;
}

/* The first helper yielded and left; the second works beyond the limit. */
static int leave_late(void *arg)
{
	one_permit();
	ktest_check(permits_take(FIRST) == 0);
	permits_yield(0, FIRST);
	ktest_check(permits_take(SECOND) == 1);
	permits_put(0);
	ktest_check(permits_in_use() == 1);
	ktest_check(permits_must_leave(1, SECOND));
	ktest_check(permits_take(FIRST) == 0);
	ktest_check(permits_in_use() == 1);
	permits_put(1);
	ktest_check(permits_in_use() == 1);
	permits_put(0);
	ktest_check(permits_in_use() == 0);
	return 0;
}

static void helpers_that_must_leave_count_no_more(void **state)
{
	assert_int_equal(ktest_in_child(leave_late, NULL), 0);
}

/* While a look asks the kernel about the first helper, its permit moves on. */
static bool move_permit(long number, const long args[6], long *result)
{
	if (number != SYS_sched_getattr || (uint32_t)args[0] != FIRST)
		return false;
	syscalls_answer = NULL;
	permits_yield(0, FIRST);
	ktest_check(permits_take(SECOND) == 1);
	return false;
}

static int look_while_moving(void *arg)
{
	one_permit();
	ktest_check(permits_take(FIRST) == 0);
	syscalls_answer = move_permit;
	ktest_check(permits_in_use() == 1);
	ktest_check(!syscalls_answer);
	ktest_check(permits_in_use() == 1);
	permits_put(1);
	ktest_check(permits_in_use() == 0);
	permits_put(0);
	return 0;
}

static void a_permit_that_moves_is_counted_once(void **state)
{
	assert_int_equal(ktest_in_child(look_while_moving, NULL), 0);
}

/* ---- stress ---- */

#define LOOKS 20000
#define MOVES 10000

static uint32_t stop, nr_moves;

/* The permit goes round: one helper yields, another takes over. */
static void *move_for_ever(void *arg)
{
	while (!kt_load(&stop)) {
		ktest_check(permits_take(FIRST) == 0);
		permits_yield(0, FIRST);
		ktest_check(permits_take(SECOND) == 1);
		permits_put(0);
		ktest_check(permits_take(FIRST) == 0);
		permits_put(1);
		permits_put(0);
		kt_add(&nr_moves, 1);
	}
	return NULL;
}

static int look_often(void *arg)
{
	pthread_t thread;

	one_permit();
	ktest_check(!pthread_create(&thread, NULL, move_for_ever, NULL));
	for (int i = 0; i < LOOKS || kt_load(&nr_moves) < MOVES; i++)
		ktest_check(permits_used() <= 1);
	kt_store(&stop, 1);
	pthread_join(thread, NULL);
	ktest_check(permits_used() == 0);
	return 0;
}

static void no_look_sees_more_than_the_limit(void **state)
{
	assert_int_equal(ktest_in_child(look_often, NULL), 0);
}

/* ---- what each job says ---- */

#define UNITS 400

static struct {
	pthread_t caller;
	bool taken; /* the permit, by nobody who works here */
	unsigned units;
	uint32_t helped; /* chunks of the helper */
} listed_job;

static unsigned listed_helpers(void)
{
	struct ktask_job_info jobs[8] = { KTASK_JOB_INFO_INIT };
	unsigned nr = ktask_jobs(jobs, 8, NULL), helpers = 0;

	for (unsigned i = 0; i < nr && i < 8; i++)
		if (jobs[i].pid == getpid())
			helpers = jobs[i].helpers;
	return helpers;
}

/* The first half of the caller's time the permit is another's. */
static int look_in_chunk(void *start, void *end, void *arg)
{
	bool caller = pthread_equal(pthread_self(), listed_job.caller);

	usleep(500);
	if (!caller) {
		/* 0: it shall leave, or the job is over otherwise. */
		ktest_check(listed_helpers() <= 1);
		kt_add(&listed_job.helped, 1);
	} else if (listed_job.taken) {
		ktest_check(listed_helpers() == 0);
		if (++listed_job.units < UNITS / 2)
			return 0;
		listed_job.taken = false;
		permits_put(0);
	}
	return 0;
}

static int look_at_own_job(void *arg)
{
	DEFINE_KTASK_CTL(ctl, look_in_chunk, NULL, 1);

	one_permit();
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktask_ctl_set_chunk_us(&ctl, 1);
	listed_job.caller = pthread_self();
	listed_job.taken = true;
	ktest_check(permits_take(FIRST) == 0);
	ktest_check(!ktask_run(NULL, UNITS, &ctl));
	ktest_check(permits_used() == 0);
	/* Beside much other work no helper may have come. */
	printf("# the helper did %u of %u chunks\n", listed_job.helped, UNITS);
	return 0;
}

static void who_waits_for_a_permit_is_no_helper_yet(void **state)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ktest_skip("a job gets one thread here: it has no entry");
	assert_int_equal(ktest_in_child(look_at_own_job, NULL), 0);
}

static int end(void **state)
{
	return remove_registry();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(helpers_that_must_leave_count_no_more),
		KTEST(a_permit_that_moves_is_counted_once),
		KTEST(no_look_sees_more_than_the_limit),
		KTEST(who_waits_for_a_permit_is_no_helper_yet),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
