/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where each core has two threads, a helper stays off the caller's core while
 * another core is free; a second helper of the same job may share one.
 *
 * A helper that got none of those CPUs for 3 ms may run on any.  So a job counts only if its
 * helper was in a chunk within 3 ms of the job's begin, and if the caller cannot have
 * changed its CPU until then, as it was not switched.
 */
#include "sys.h"

#include <sys/resource.h>

#include <ktask/ktask.h>

#define UNITS 400
#define SECONDS 100
#define STARVED_NS 3000000 /* as in engine/helpers.c */
#define NR_JUDGED 8 /* jobs that count */
#define NR_JUDGED_MIN 2

static cpu_set_t core; /* the caller's */

static struct {
	pid_t caller;
	unsigned cpu; /* where the caller began */
	bool moved; /* and is no more */
	bool works; /* the caller, in a chunk */
	unsigned nr_beside, nr_elsewhere; /* chunks of helpers */
	uint64_t begin_ns;
	long switches; /* of the caller, when the job began */
	enum early { NONE, APART, BESIDE } early; /* helper, within 3 ms */
	bool is_noticed; /* by the caller */
	bool is_judged; /* the job counts */
} seen;

static long count_switches(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static cpu_set_t core_of(unsigned cpu)
{
	char path[100];

	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/topology/core_cpus_list",
		 cpu);
	return sys_list(path);
}

/* What it is bound to, not where it happens to be. */
static bool is_beside(void)
{
	cpu_set_t mask, both;

	sched_getaffinity(0, sizeof(mask), &mask);
	CPU_AND(&both, &mask, &core);
	return CPU_COUNT(&both);
}

/* A caller that waits leaves its core to those who begin their last chunk late. */
static void count_core(void)
{
	bool beside = is_beside();

	if (!seen.early && ktest_now_ns() - seen.begin_ns < STARVED_NS)
		__atomic_store_n(&seen.early, beside ? BESIDE : APART,
				 __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&seen.works, __ATOMIC_SEQ_CST))
		return;
	__atomic_add_fetch(beside ? &seen.nr_beside : &seen.nr_elsewhere, 1,
			   __ATOMIC_RELAXED);
}

/* Of the caller, between two of its chunks: was it switched before the helper looked? */
static void judge_early_helper(void)
{
	if (seen.is_noticed || !__atomic_load_n(&seen.early, __ATOMIC_SEQ_CST))
		return;
	seen.is_noticed = true;
	seen.is_judged = count_switches() == seen.switches;
}

static int judge_chunk(void *start, void *end, void *arg)
{
	if (gettid() != seen.caller) {
		count_core();
		sys_work(200);
		return 0;
	}
	judge_early_helper();
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
static void run_job(unsigned threads)
{
	DEFINE_KTASK_CTL(ctl, judge_chunk, NULL, 1);

	ktask_ctl_set_max_threads(&ctl, threads);
	ktask_ctl_set_chunk_us(&ctl, 1);
	memset(&seen, 0, sizeof(seen));
	seen.caller = gettid();
	seen.switches = count_switches();
	seen.cpu = (unsigned)sched_getcpu();
	core = core_of(seen.cpu);
	seen.begin_ns = ktest_now_ns();
	assert_int_equal(ktask_run(NULL, UNITS, &ctl), 0);
	/* It may also have been away and come back. */
	if (seen.moved)
		seen.nr_elsewhere = seen.nr_beside = 0;
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
	unsigned nr = 0;

	need_siblings();
	do {
		run_job(2);
		if (seen.is_judged) {
			assert_int_equal(seen.early, APART);
			nr++;
		}
	} while (nr < NR_JUDGED && ktest_now_ns() < end_ns);
	printf("# %u helpers were there within 3 ms\n", nr);
	if (nr < NR_JUDGED_MIN)
		ktest_skip("helpers get no CPU in time here: %u did", nr);
}

/* Three helpers on four CPUs: the caller's sibling is the last resort. */
static void many_helpers_use_siblings_too(void **state)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;

	need_siblings();
	do {
		run_job(4);
	} while ((!seen.nr_beside || !seen.nr_elsewhere) &&
		 ktest_now_ns() < end_ns);
	printf("# %u chunks beside the caller, %u elsewhere\n", seen.nr_beside,
	       seen.nr_elsewhere);
	assert_true(seen.nr_beside);
	assert_true(seen.nr_elsewhere);
}

KTEST_MAIN(KTEST(one_helper_is_on_another_core),
	   KTEST(many_helpers_use_siblings_too))
