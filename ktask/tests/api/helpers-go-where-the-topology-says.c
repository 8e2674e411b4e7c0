/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * On recorded machines the helpers of real jobs are bound to the CPUs of the
 * node whose work they were dealt, or of the nearest node with CPUs that the
 * caller may use, whole cores before siblings, until the node's cap is reached.
 */
#include "ktest.h"
#include "support/machine.h"

#include <stdbool.h>

#include <ktask/ktask.h>

#define UNITS 300
#define UNIT ((char *)0x100000)
#define RANGES 8
#define BINDINGS 4
#define JOBS_NS 40000000000ull

static const struct job {
	const char *machine, *allowed;
	unsigned caller_cpu;
	const char *cpus; /* of the control block */
	unsigned threads;
	unsigned nr_ranges;
	int nodes[RANGES]; /* of the ranges */
	const char *bindings[BINDINGS]; /* of helpers; each is seen */
} jobs[] = {
	/* Half of them on each node, on whole cores, not on the caller's. */
	{ "two-nodes", "0-15", 0, NULL, 5, 2, { 0, 1 }, { "1-3", "4-7" } },
	/* Work that belongs to no node is done where the caller is, */
	{ "two-nodes", "0-15", 5, NULL, 4, 1, { -1 }, { "4,6-7" } },
	/* work of a node that does not exist too. */
	{ "two-nodes", "0-15", 5, NULL, 4, 1, { 7 }, { "4,6-7" } },
	/* The caller and its mask may be elsewhere than the memory. */
	{ "two-nodes", "0-15", 0, NULL, 4, 1, { 1 }, { "4-7" } },
	{ "two-nodes", "4-7,12-15", 4, NULL, 4, 1, { 0 }, { "5-7" } },
	{ "two-nodes", "0-15", 0, "9,13", 3, 2, { 0, 1 }, { "9", "13" } },
	/* 3 whole cores, then siblings, then the cap of 6 for the node. */
	{ "two-nodes",
	  "0-15",
	  0,
	  NULL,
	  8,
	  1,
	  { 0 },
	  { "1-3", "1-3,9-11", "1-7" } },
	{ "eight-nodes",
	  "0-31",
	  0,
	  NULL,
	  4,
	  4,
	  { 4, 5, 6, 7 },
	  { "20,22", "24,26", "28,30" } },
	{ "memory-only", "0-7", 0, NULL, 4, 1, { 2 }, { "4-7" } },
	{ "memory-only", "0-7", 0, NULL, 3, 1, { 3 }, { "1-3", "4-7" } },
	{ "sparse-nodes", "4-7", 4, NULL, 3, 2, { 252, 255 }, { "5-7" } },
	{ "cpu-only", "0-5", 2, NULL, 2, 1, { -1 }, { "3" } },
	/* The caller begins with the nearer node, 2. */
	{ "cpu-only", "0-5", 2, NULL, 2, 2, { 0, 2 }, { "0-1" } },
	{ "hybrid", "0-9", 1, NULL, 2, 1, { -1 }, { "2" } },
	{ "hybrid", "0-9", 1, NULL, 4, 1, { -1 }, { "2", "2,4-9" } },
	{ "big-little", "0-7", 7, NULL, 4, 1, { -1 }, { "4-6" } },
	{ "scattered-siblings", "0-7", 3, NULL, 4, 1, { -1 }, { "0-1,4" } },
	{ "offline", "0,2-4", 2, NULL, 2, 2, { 0, 1 }, { "4" } },
	{ "offline", "0,2-4", 2, NULL, 2, 1, { 0 }, { "0" } },
	{ "silent", "0-3", 1, NULL, 3, 1, { -1 }, { "0,2-3" } },
};

static struct {
	const struct job *job;
	unsigned seen; /* bits of places */
	unsigned strange;
	uint8_t done[RANGES * UNITS];
} now;

static bool equals_but_caller(struct kt_cpus wide, const struct kt_cpus *cpus)
{
	if (cpus_equal(&wide, cpus))
		return true;
	cpus_clear(&wide, laid_machine.caller_cpu);
	return cpus_equal(&wide, cpus);
}

/*
 * A busy machine changes two things.  Where the preferred CPUs are kept busy a
 * helper is given all of its node, or all of the job's; and the caller's, once
 * the caller waits for it.
 */
static bool is_widened(const struct kt_cpus *cpus)
{
	const struct topo *topo = topo_get();

	for (unsigned i = 0; i < topo->nr_nodes; i++) {
		struct kt_cpus wide = laid_machine.allowed;

		if (cpus_narrow(&wide, &topo->node_cpus[i]) &&
		    equals_but_caller(wide, cpus))
			return true;
	}
	return equals_but_caller(laid_machine.allowed, cpus);
}

/* And a caller that gets no CPU leaves the most work in its own range. */
static bool is_in_a_range(const struct kt_cpus *cpus)
{
	const struct topo *topo = topo_get();

	for (unsigned i = 0; i < topo->nr_nodes; i++) {
		struct kt_cpus in_node = *cpus;

		if (!cpus_narrow(&in_node, &topo->node_cpus[i]) ||
		    !cpus_equal(&in_node, cpus))
			continue;
		for (unsigned j = 0; j < now.job->nr_ranges; j++)
			if (now.job->nodes[j] == topo->ids[i])
				return now.job->nr_ranges > 1;
	}
	return false;
}

static int check_binding(void *start, void *end, void *arg)
{
	struct kt_cpus cpus = machine_cpus_of(gettid());
	char is[256] = "";
	unsigned i = 0;

	for (char *unit = start; unit < (char *)end; unit++)
		__atomic_add_fetch(&now.done[unit - UNIT], 1, __ATOMIC_RELAXED);
	usleep(200);
	if (gettid() == laid_machine.caller)
		return 0;
	machine_list(is, &cpus);
	while (i < BINDINGS && now.job->bindings[i] &&
	       strcmp(is, now.job->bindings[i]))
		i++;
	if (i < BINDINGS && now.job->bindings[i])
		__atomic_or_fetch(&now.seen, 1u << i, __ATOMIC_RELAXED);
	else if (!is_widened(&cpus) && !is_in_a_range(&cpus) &&
		 !__atomic_fetch_add(&now.strange, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "# a helper is on %s\n", is);
	return 0;
}

static int run_job(void)
{
	struct ktask_node ranges[RANGES];
	struct kt_cpus cpus;
	DEFINE_KTASK_CTL(ctl, check_binding, NULL, 1);

	memset(now.done, 0, sizeof(now.done));
	for (unsigned i = 0; i < now.job->nr_ranges; i++)
		ranges[i] = (struct ktask_node){ UNIT + (size_t)i * UNITS,
						 UNITS, now.job->nodes[i] };
	ktask_ctl_set_max_threads(&ctl, now.job->threads);
	/* Chunks of one unit: helpers come while the job runs. */
	ktask_ctl_set_chunk_us(&ctl, 1);
	if (now.job->cpus) {
		cpus = machine_parse(now.job->cpus);
		ktask_ctl_set_cpus(&ctl, &cpus, sizeof(cpus));
	}
	return ktask_run_numa(ranges, now.job->nr_ranges, &ctl);
}

static unsigned all_bindings(const struct job *job)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < BINDINGS && job->bindings[i]; i++)
		bits |= 1u << i;
	return bits;
}

/* Helpers that start late in one job are there in the next. */
static int run_jobs(void *arg)
{
	uint64_t end_ns = ktest_now_ns() + JOBS_NS;

	now.job = arg;
	machine_begin(now.job->machine, now.job->allowed, now.job->caller_cpu);
	while (now.seen != all_bindings(now.job) && ktest_now_ns() < end_ns) {
		ktest_check(!run_job());
		for (unsigned j = 0; j < now.job->nr_ranges * UNITS; j++)
			ktest_check(now.done[j] == 1);
		ktest_check(!now.strange);
	}
	machine_end();
	ktest_check(now.seen == all_bindings(now.job));
	return 0;
}

static void helpers_are_there(void **state)
{
	assert_int_equal(ktest_in_child_for(run_jobs, *state, 100), 0);
}

int main(void)
{
	struct CMUnitTest tests[KTEST_ARRAY_SIZE(jobs)];

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(jobs); i++)
		tests[i] = (struct CMUnitTest){
			.name = jobs[i].machine,
			.test_func = helpers_are_there,
			.initial_state = (void *)&jobs[i],
		};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
