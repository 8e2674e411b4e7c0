/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where each core has two threads, a helper stays off the caller's core while
 * another core is free; a second helper of the same job may share one.
 *
 * A helper that got none of those CPUs for 3 ms may run on any: where the guest's CPUs
 * stand still that is so in some jobs, but not in all.
 */
#include "sys.h"

#include <ktask/ktask.h>

#define UNITS 400
#define SECONDS 100
#define NR_APART 5 /* jobs whose helper stayed off the caller's core */

static cpu_set_t core; /* the caller's */

static struct {
	pid_t caller;
	unsigned cpu; /* where the caller began */
	bool moved; /* and is no more */
	bool works; /* the caller, in a chunk */
	unsigned nr_beside, nr_elsewhere; /* chunks of helpers */
} seen;

static cpu_set_t core_of(unsigned cpu)
{
	char path[100];

	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/core_cpus_list",
		 cpu);
	return sys_list(path);
}

/* What it is bound to, not where it happens to be.  A caller that waits leaves
 * its core to those who begin their last chunk late. */
static void look(void)
{
	cpu_set_t mask, both;

	sched_getaffinity(0, sizeof(mask), &mask);
	if (!__atomic_load_n(&seen.works, __ATOMIC_SEQ_CST))
		return;
	CPU_AND(&both, &mask, &core);
	__atomic_add_fetch(CPU_COUNT(&both) ? &seen.nr_beside
					    : &seen.nr_elsewhere,
			   1, __ATOMIC_RELAXED);
}

static int chunk(void *start, void *end, void *arg)
{
	if (gettid() != seen.caller) {
		look();
		sys_work(200);
		return 0;
	}
	if ((unsigned)sched_getcpu() != seen.cpu)
		seen.moved = true;
	__atomic_store_n(&seen.works, true, __ATOMIC_SEQ_CST);
	sys_work(200);
	__atomic_store_n(&seen.works, false, __ATOMIC_SEQ_CST);
	if ((unsigned)sched_getcpu() != seen.cpu)
		seen.moved = true;
	return 0;
}

/* The caller stays on its CPU, which a mask of one would forbid helpers. */
static void run(unsigned threads)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;
	DEFINE_KTASK_CTL(ctl, chunk, NULL, 1);

	ktask_ctl_set_max_threads(&ctl, threads);
	ktask_ctl_set_chunk_us(&ctl, 1);
	memset(&seen, 0, sizeof(seen));
	seen.caller = gettid();
	do {
		seen.cpu = (unsigned)sched_getcpu();
		seen.moved = false;
		core = core_of(seen.cpu);
		seen.nr_beside = seen.nr_elsewhere = 0;
		assert_int_equal(ktask_run(NULL, UNITS, &ctl), 0);
		/* It may also have been away and come back. */
		if (seen.moved)
			seen.nr_elsewhere = seen.nr_beside = 0;
	} while (!seen.nr_elsewhere && ktest_now_ns() < end_ns);
	printf("# %u threads: %u chunks beside the caller, %u elsewhere\n",
	       threads, seen.nr_beside, seen.nr_elsewhere);
}

static void need_siblings(void)
{
	core = core_of(0);
	if (CPU_COUNT(&core) < 2)
		ktest_skip("no core of this machine has two threads");
}

static void one_helper_is_on_another_core(void **state)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;
	unsigned nr_apart = 0;

	need_siblings();
	do {
		run(2);
		nr_apart += seen.nr_elsewhere && !seen.nr_beside;
	} while (nr_apart < NR_APART && ktest_now_ns() < end_ns);
	assert_true(nr_apart > 0);
}

/* Three helpers on four CPUs: the caller's sibling is the last resort. */
static void many_helpers_use_siblings_too(void **state)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;

	need_siblings();
	do {
		run(4);
	} while (!seen.nr_beside && ktest_now_ns() < end_ns);
	assert_true(seen.nr_beside);
	assert_true(seen.nr_elsewhere);
}

KTEST_MAIN(KTEST(one_helper_is_on_another_core),
	   KTEST(many_helpers_use_siblings_too))
