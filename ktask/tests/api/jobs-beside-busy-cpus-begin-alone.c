/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that begins while more threads run than there are CPUs has no helper
 * and makes no thread, even the first of its process: helpers would get no CPU,
 * and the caller would wait for what they had begun.  It does not even read what is
 * needed for helpers.  When the others are gone it has helpers, also if no job lasts
 * long enough to see them go, and one that lasts tries them in any case.
 */
#include "support/loaded_machine.h"

#include "user/limits/overload.h"

#define NR_UNITS 400
#define BUSY "9.00 9.00 9.00 900/1000 4711\n"
#define SECOND_NS 1000000000
#define IDLE "0.00 0.00 0.00 1/1000 4711\n"

static int begin_alone(void *arg)
{
	struct work work = { 0 };

	put_running(BUSY);
	work_begin(&work, NR_UNITS);
	ktest_check(!work_run(&work));
	ktest_check(work_done_once(&work));
	ktest_check(!work.nr_helper_chunks);
	ktest_check(!helpers_now(NULL, 0));
	ktest_check(!pool_busy());
	/* Limits, control groups, energy: nobody has looked. */
	ktest_check(!job_policy_read_ns());
	work_end(&work);
	return 0;
}

static int help_when_idle(void *arg)
{
	ktest_check(!begin_alone(NULL));
	put_running(IDLE);
	return work_met() == -ETIME;
}

/* The last job's count is too old to be used again. */
static bool is_alone(void)
{
	nap_us(2000);
	return begins_alone();
}

/* Each of these jobs counts the threads that run once, when it begins. */
static int recover_by_short_jobs(void *arg)
{
	put_running(BUSY);
	ktest_check(is_alone());
	ktest_check(is_alone());
	put_running(IDLE);
	for (int i = 0; i < 3; i++)
		is_alone();
	ktest_check(!is_alone());
	return 0;
}

static int ignore_others(void *arg)
{
	setenv("KTASK_OVERLOAD", "ignore", 1);
	put_running(BUSY);
	ktest_check(!is_alone());
	return 0;
}

static int nap_until_helped(struct work *work, size_t from, size_t to)
{
	nap_us(1000);
	return __atomic_load_n(&work->nr_helper_chunks, __ATOMIC_RELAXED)
		       ? -ECANCELED
		       : 0;
}

/* Others that run may leave helpers a share. */
static int try_in_time(void *arg)
{
	struct work work = { .also = nap_until_helped };

	put_running(BUSY);
	work_begin(&work, 100000);
	ktest_check(work_run(&work) == -ECANCELED);
	work_end(&work);
	return 0;
}

/* Another thread has read the clock later, and has told before this one asks. */
static int ask_with_earlier_clock(void *arg)
{
	const uint64_t now_ns = ktest_now_ns();

	put_running(BUSY);
	overload_starved(now_ns + 1);
	ktest_check(overload_threads(1, 2, now_ns) == 1);
	put_running(IDLE);
	for (int i = 0; i < 3; i++)
		ktest_check(overload_threads(1, 2, now_ns - 1) == 1);
	put_running(BUSY);
	ktest_check(overload_threads(1, 2, now_ns + SECOND_NS + 1) == 2);
	ktest_check(!overload_begins(now_ns + SECOND_NS));
	return 0;
}

static int make_machine(void **state)
{
	loaded_machine_begin(0);
	return 0;
}

static void without_helpers(void **state)
{
	assert_int_equal(ktest_in_child(begin_alone, NULL), 0);
}

static void with_helpers_when_cpus_idle(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child(help_when_idle, NULL), 0);
}

static void with_helpers_after_a_few_short_ones(void **state)
{
	assert_int_equal(ktest_in_child(recover_by_short_jobs, NULL), 0);
}

static void with_helpers_if_others_are_ignored(void **state)
{
	assert_int_equal(ktest_in_child(ignore_others, NULL), 0);
}

static void with_helpers_if_they_last(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child(try_in_time, NULL), 0);
}

static void alone_if_another_thread_has_seen_it_later(void **state)
{
	assert_int_equal(ktest_in_child(ask_with_earlier_clock, NULL), 0);
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, make_machine, remove_machine)

KTEST_MAIN(T(without_helpers), T(with_helpers_when_cpus_idle),
	   T(with_helpers_after_a_few_short_ones),
	   T(with_helpers_if_others_are_ignored), T(with_helpers_if_they_last),
	   T(alone_if_another_thread_has_seen_it_later))
