/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper that gets no CPU among the preferred, since other work keeps these
 * busy, has its item submitted again for all CPUs of the node; one that gets one
 * is left there.
 */
#include "ktest.h"
#include "support/machine.h"

#include <ktask/ktask.h>

#define UNITS 400

static unsigned nr_helped;

static int count_chunk(void *start, void *end, void *arg)
{
	usleep(100);
	if (gettid() != laid_machine.caller)
		__atomic_add_fetch(&nr_helped, 1, __ATOMIC_RELAXED);
	return 0;
}

static void run_job(void)
{
	struct ktask_node range = { NULL, UNITS, 0 };
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);

	ktask_ctl_set_max_threads(&ctl, 2);
	ktask_ctl_set_chunk_us(&ctl, 1);
	ktest_check(!ktask_run_numa(&range, 1, &ctl));
}

/* Has any thread been bound to exactly these? */
static int is_bound(const char *list)
{
	struct kt_cpus cpus = machine_parse(list);
	int found = 0;

	pthread_mutex_lock(&laid_machine.lock);
	for (unsigned i = 0; i < laid_machine.nr_bound; i++)
		found |= cpus_equal(&laid_machine.bound[i].cpus, &cpus);
	pthread_mutex_unlock(&laid_machine.lock);
	return found;
}

static void wait_for_helpers(void)
{
	for (int i = 0; i < 20000 && !nr_helped; i++)
		run_job();
	ktest_check(nr_helped);
	/* They look for the next job for 50 us. */
	usleep(50000);
}

/* One that did not sleep yet takes the item, and sleeps before the next. */
static int starve_helper(void *arg)
{
	machine_begin("two-nodes", "0-15", 0);
	wait_for_helpers();
	__atomic_store_n(&laid_machine.hold, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 50 && !is_bound("1-3,8-11"); i++)
		run_job();
	ktest_check(is_bound("1-3,8-11"));
	__atomic_store_n(&laid_machine.hold, 0, __ATOMIC_RELEASE);
	run_job();
	machine_end();
	return 0;
}

static void who_gets_no_cpu_is_moved(void **state)
{
	assert_int_equal(ktest_in_child_for(starve_helper, NULL, 100), 0);
}

/* Without siblings there is nothing else to give. */
static int starve_without_siblings(void *arg)
{
	machine_begin("four-nodes", "0-15", 0);
	wait_for_helpers();
	__atomic_store_n(&laid_machine.hold, 1, __ATOMIC_RELEASE);
	run_job();
	ktest_check(!is_bound("1-15"));
	__atomic_store_n(&laid_machine.hold, 0, __ATOMIC_RELEASE);
	machine_end();
	return 0;
}

static void not_beyond_its_node(void **state)
{
	assert_int_equal(ktest_in_child_for(starve_without_siblings, NULL, 100),
			 0);
}

KTEST_MAIN(KTEST(who_gets_no_cpu_is_moved), KTEST(not_beyond_its_node))
