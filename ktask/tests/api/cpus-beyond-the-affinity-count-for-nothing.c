/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A process that may use a part of the CPUs, as one in a container, does not take threads
 * that run on the others for its own load: a job on a full machine has helpers unless its
 * own CPUs were seen not to idle.  A helper that is bound to a part of these, as to a node,
 * counts all of them.
 */
#include "support/loaded_machine.h"

#include "user/blocking/manager_sample.h"
#include "user/limits/limits.h"

#define FULL "900.00 900.00 900.00 900/1000 4711\n"
/* Readings of idle time are 100 ms to a second apart. */
#define APART_US 150000
#define NR_TRIES 40

static unsigned long idle_ticks;

/* @ticks: how long each CPU has idled since the last call */
static void put_idle(unsigned long ticks)
{
	idle_ticks += ticks;
	tree_put_idle(&loaded_tree, sysconf(_SC_NPROCESSORS_CONF) + 1,
		      idle_ticks);
}

static int begin_first_job(void *arg)
{
	put_idle(0);
	ktest_check(!begins_alone());
	return 0;
}

static int begin_while_own_idle(void *arg)
{
	for (int i = 0; i < 4; i++) {
		put_idle(1000);
		ktest_check(!begins_alone());
		nap_us(APART_US);
	}
	return 0;
}

/* This thread sleeps meanwhile, and its CPU does not idle for it either. */
static int begin_while_own_are_busy(void *arg)
{
	put_idle(0);
	for (int i = 0; i < NR_TRIES; i++) {
		if (begins_alone())
			return 0;
		nap_us(APART_US);
	}
	return 1;
}

/* Where helpers may run on idle CPUs only. */
static int count_idle_threads(void *arg)
{
	struct kt_cpus process;

	ktest_check(cpus_get_affinity(&process));
	put_idle(0);
	ktest_check(limits_idle_threads(1) == 1);
	for (int i = 0; i < NR_TRIES; i++) {
		nap_us(APART_US);
		put_idle(1000);
		if (limits_idle_threads(1) > 1)
			return !limits_has_idle_cpu(&process);
	}
	return 1;
}

/* That the manager of a job finds left by others, while one thread of the job runs. */
static int count_left(const struct kt_cpus *process)
{
	struct manager_sample sample = { .now_ns = ktest_now_ns(),
					 .seen.running = 1 };

	sample_load(&sample, process);
	return (int)sample.cpus - ((int)sample.runnable - 1 - 1);
}

/* @arg: how long each CPU idles between two readings, in ticks */
static int sample_left(void *arg)
{
	unsigned long ticks = *(unsigned long *)arg;
	struct kt_cpus process;

	ktest_check(cpus_get_affinity(&process));
	for (int i = 0; i < NR_TRIES; i++) {
		put_idle(ticks);
		/* On the whole machine none is left. */
		if (i && count_left(&process) ==
				 (ticks ? (int)cpus_count(&process) : 1))
			return 0;
		nap_us(APART_US);
	}
	return 1;
}

/* As a helper does that is bound to the CPUs of a node. */
static void *poll_from_one_cpu(void *process)
{
	struct kt_cpus one = { 0 };

	cpus_set(&one, (unsigned)sched_getcpu());
	ktest_check(cpus_set_affinity(0, &one));
	put_idle(1000);
	return limits_has_idle_cpu(process) ? process : NULL;
}

static bool is_idle_to_helper(struct kt_cpus *process)
{
	pthread_t helper;
	void *seen;

	ktest_check(!pthread_create(&helper, NULL, poll_from_one_cpu, process));
	pthread_join(helper, &seen);
	put_idle(1000);
	return seen;
}

/* Nothing is known where more than a second passes between two readings.  What the helper
 * reads does not make it so. */
static int poll_by_turns(void *arg)
{
	struct kt_cpus process;

	ktest_check(cpus_get_affinity(&process));
	for (int i = 0; i < NR_TRIES; i++) {
		nap_us(APART_US);
		put_idle(1000);
		if (limits_idle_threads(1) > 1 && is_idle_to_helper(&process) &&
		    limits_idle_threads(1) > 1)
			return 0;
	}
	return 1;
}

/* Of one CPU more than this process may use, all of them busy. */
static int make_machine(void **state)
{
	loaded_machine_begin(1);
	put_running(FULL);
	return 0;
}

static void the_first_job_has_helpers(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child(begin_first_job, NULL), 0);
}

static void jobs_have_helpers_while_own_cpus_idle(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child(begin_while_own_idle, NULL), 0);
}

static void jobs_begin_alone_while_own_cpus_are_busy(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child(begin_while_own_are_busy, NULL), 0);
}

static void idle_threads_are_those_of_own_cpus(void **state)
{
	assert_int_equal(ktest_in_child(count_idle_threads, NULL), 0);
}

static void compensating_helpers_need_own_cpus(void **state)
{
	unsigned long idle = 1000, busy = 0;

	assert_int_equal(ktest_in_child(sample_left, &idle), 0);
	assert_int_equal(ktest_in_child(sample_left, &busy), 0);
}

static void a_helper_of_a_node_counts_all_own_cpus(void **state)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ktest_skip("a machine of one CPU");
	assert_int_equal(ktest_in_child(poll_by_turns, NULL), 0);
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, make_machine, remove_machine)

KTEST_MAIN(T(the_first_job_has_helpers),
	   T(jobs_have_helpers_while_own_cpus_idle),
	   T(jobs_begin_alone_while_own_cpus_are_busy),
	   T(idle_threads_are_those_of_own_cpus),
	   T(compensating_helpers_need_own_cpus),
	   T(a_helper_of_a_node_counts_all_own_cpus))
