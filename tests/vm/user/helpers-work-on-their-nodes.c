/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * On a machine that really has nodes: helpers are bound to CPUs of one node, as
 * many as the node's cap allows; they do the work of their node first, then
 * that of the nearest node with work, a memory-only node's included; and each
 * node gets a helper.
 */
#include "sys.h"

#include <ktask/ktask.h>

#include "core/caps.h"

#define UNITS 250
#define UNIT_US 300
#define SECONDS 60
/* Claimed by some thread, but not begun. */
#define SLACK 64

static struct sys_node nodes[SYS_NODES_MAX];
static unsigned nr_nodes;

static struct {
	pid_t caller;
	int left[SYS_NODES_MAX]; /* units that nobody has begun, by node */
	uint8_t done[SYS_NODES_MAX][UNITS];
	int bound_now[SYS_NODES_MAX], bound_most[SYS_NODES_MAX];
	unsigned nr_bound[SYS_NODES_MAX]; /* chunks of helpers bound there */
	unsigned nr_unbound;
	unsigned nr_too_early; /* chunks of a far node before a nearer one's */
	unsigned nr_split; /* helpers bound to parts of several nodes */
	unsigned nr_remote, nr_chunks;
} seen;

#define COUNT(what) __atomic_add_fetch(&(what), 1, __ATOMIC_RELAXED)

static void find_nodes(void)
{
	nr_nodes = sys_nodes(nodes);
	if (nr_nodes < 2)
		ktest_skip("a machine of one node");
}

/* Node that the calling helper is bound to; -1: to none. */
static int bound_node(void)
{
	cpu_set_t mask, all = sys_list(SYS_CPU "/online");

	sched_getaffinity(0, sizeof(mask), &mask);
	CPU_AND(&mask, &mask, &all);
	for (unsigned i = 0; i < nr_nodes; i++)
		if (sys_within(&mask, &nodes[i].cpus))
			return (int)i;
	return -1;
}

static bool serves_node(unsigned by, unsigned node)
{
	if (by == node || nodes[node].nr_cpus)
		return by == node;
	for (unsigned i = 0; i < nr_nodes; i++)
		if (nodes[i].nr_cpus &&
		    nodes[node].distance[i] < nodes[node].distance[by])
			return false;
	return true;
}

/* Has a nearer node work that somebody could have claimed? */
static bool too_early(unsigned by, unsigned node)
{
	for (unsigned i = 0; i < nr_nodes; i++)
		if (nodes[by].distance[i] < nodes[by].distance[node] &&
		    __atomic_load_n(&seen.left[i], __ATOMIC_RELAXED) > SLACK)
			return true;
	return false;
}

static void count_node(unsigned node, int by)
{
	if (by < 0) {
		COUNT(seen.nr_unbound);
		return;
	}
	COUNT(seen.nr_chunks);
	if (serves_node((unsigned)by, node))
		return;
	COUNT(seen.nr_remote);
	if (too_early((unsigned)by, node))
		COUNT(seen.nr_too_early);
}

static void enter_node(int by)
{
	int now = COUNT(seen.bound_now[by]);

	COUNT(seen.nr_bound[by]);
	if (now > seen.bound_most[by])
		seen.bound_most[by] = now;
	if (!CPU_ISSET(sched_getcpu(), &nodes[by].cpus))
		COUNT(seen.nr_split);
}

/* Unit u of the range of node i is i * UNITS + u. */
static int count_chunk(void *start, void *end, void *arg)
{
	size_t from = (size_t)start - 1, to = (size_t)end - 1;
	unsigned node = (unsigned)(from / UNITS);
	bool helper = gettid() != seen.caller;
	int by = helper ? bound_node() : -1;

	__atomic_sub_fetch(&seen.left[node], (int)(to - from),
			   __ATOMIC_RELAXED);
	/* Where the caller was when it began, nobody knows. */
	if (helper)
		count_node(node, by);
	if (helper && by >= 0)
		enter_node(by);
	for (; from < to; from++) {
		sys_work(UNIT_US);
		COUNT(seen.done[node][from % UNITS]);
	}
	if (helper && by >= 0)
		__atomic_sub_fetch(&seen.bound_now[by], 1, __ATOMIC_RELAXED);
	return 0;
}

static void run_job(void)
{
	struct ktask_node ranges[SYS_NODES_MAX];
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);

	ktask_ctl_set_chunk_us(&ctl, 1);
	for (unsigned i = 0; i < nr_nodes; i++) {
		ranges[i].start = (void *)(1 + (size_t)i * UNITS);
		ranges[i].task_size = UNITS;
		ranges[i].nid = nodes[i].id;
		seen.left[i] = UNITS;
	}
	memset(seen.done, 0, sizeof(seen.done));
	assert_int_equal(ktask_run_numa(ranges, nr_nodes, &ctl), 0);
	for (unsigned i = 0; i < nr_nodes; i++)
		for (unsigned u = 0; u < UNITS; u++)
			assert_int_equal(seen.done[i][u], 1);
}

static bool each_node_helped(void)
{
	for (unsigned i = 0; i < nr_nodes; i++)
		if (nodes[i].nr_cpus && !seen.nr_bound[i])
			return false;
	return true;
}

static void own_node_first_then_the_nearest(void **state)
{
	uint64_t end_ns;

	find_nodes();
	memset(&seen, 0, sizeof(seen));
	seen.caller = gettid();
	end_ns = ktest_now_ns() + SECONDS * 1000000000ull;
	do {
		run_job();
	} while (!each_node_helped() && ktest_now_ns() < end_ns);
	printf("# %u chunks on known nodes, %u remote, %u too early; %u of "
	       "helpers of no node\n",
	       seen.nr_chunks, seen.nr_remote, seen.nr_too_early,
	       seen.nr_unbound);
	assert_true(each_node_helped());
	assert_int_equal(seen.nr_too_early, 0);
	assert_int_equal(seen.nr_split, 0);
	for (unsigned i = 0; i < nr_nodes; i++)
		assert_true(seen.bound_most[i] <=
			    (int)kt_cap_node_limit(nodes[i].nr_cpus, 80));
}

static int bind_caller(void **state)
{
	cpu_set_t all = sys_list(SYS_CPU "/online");

	nr_nodes = sys_nodes(nodes);
	sched_setaffinity(0, sizeof(all), &all);
	return 0;
}

/* Only the CPUs of the caller's mask, whatever the nodes. */
static void within_the_callers_mask(void **state)
{
	cpu_set_t two, before;
	unsigned cpu = 0, last;

	find_nodes();
	sched_getaffinity(0, sizeof(before), &before);
	for (last = CPU_SETSIZE - 1; !CPU_ISSET(last, &before);)
		last--;
	CPU_ZERO(&two);
	CPU_SET(cpu, &two);
	CPU_SET(last, &two);
	memset(&seen, 0, sizeof(seen));
	seen.caller = gettid();
	assert_int_equal(sched_setaffinity(0, sizeof(two), &two), 0);
	for (int i = 0; i < 3; i++)
		run_job();
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	for (unsigned i = 0; i < nr_nodes; i++)
		if (!CPU_ISSET(cpu, &nodes[i].cpus) &&
		    !CPU_ISSET(last, &nodes[i].cpus))
			assert_int_equal(seen.nr_bound[i], 0);
	assert_int_equal(seen.nr_split, 0);
}

#define T(name) cmocka_unit_test_setup(name, bind_caller)

KTEST_MAIN(T(own_node_first_then_the_nearest), T(within_the_callers_mask))
