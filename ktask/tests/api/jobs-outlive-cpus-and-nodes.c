/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUs and nodes that go offline or come back, between jobs or in the middle of
 * one: each unit is done once, helpers are bound to what is there, and the caps
 * follow.  On recorded machines; really unplugging CPUs is for a machine of
 * one's own.
 */
#include "ktest.h"
#include "support/machine.h"

#include <stdbool.h>

#include <ktask/ktask.h>

#include "user/pool/user_pool.h"

#define UNITS 1500
#define UNIT ((char *)0x100000)
#define CPU "/sys/devices/system/cpu/"
#define NODE "/sys/devices/system/node/"

/* The library's clock: the machine is looked at once a second. */
static uint64_t clock_ahead_ns;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int (*real)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT,
							     "clock_gettime");
	int error = real(id, ts);

	if (id == CLOCK_MONOTONIC)
		ts->tv_sec += (time_t)(__atomic_load_n(&clock_ahead_ns,
						       __ATOMIC_RELAXED) /
				       1000000000);
	return error;
}

static void a_second_passes(void)
{
	__atomic_add_fetch(&clock_ahead_ns, 2000000000, __ATOMIC_RELAXED);
}

static struct {
	uint8_t done[2 * UNITS];
	void (*event)(void); /* in the middle of the job, by the caller */
	size_t at;
	unsigned left; /* chunks of the caller since the event */
	unsigned outside; /* helper chunks outside of what is online */
	unsigned inside;
} now;

static bool has_settled(void)
{
	/* A look every 5 ms, and whoever is in a chunk ends it. */
	return __atomic_load_n(&now.left, __ATOMIC_RELAXED) > 100;
}

static void watch_helper(void)
{
	struct kt_cpus cpus = machine_cpus_of(gettid());
	struct kt_cpus real = machine_online();

	if (!has_settled())
		return;
	if (cpus_narrow(&real, &cpus) && cpus_equal(&real, &cpus))
		__atomic_add_fetch(&now.inside, 1, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&now.outside, 1, __ATOMIC_RELAXED);
}

static bool event_left(void)
{
	return __atomic_load_n(&now.event, __ATOMIC_RELAXED);
}

/* Helpers leave the rest of each range until the caller was there. */
static void await_event(size_t unit)
{
	for (int i = 0; i < 100000 && unit % UNITS > UNITS / 3 && event_left();
	     i++)
		usleep(100);
}

static int mark_chunk(void *start, void *end, void *arg)
{
	bool caller = gettid() == laid_machine.caller;

	for (char *unit = start; unit < (char *)end; unit++)
		__atomic_add_fetch(&now.done[unit - UNIT], 1, __ATOMIC_RELAXED);
	usleep(100);
	if (!caller) {
		await_event((size_t)((char *)start - UNIT));
		watch_helper();
	} else if (now.event && (size_t)((char *)start - UNIT) >= now.at) {
		now.event();
		__atomic_store_n(&now.event, NULL, __ATOMIC_RELAXED);
		__atomic_store_n(&now.left, 1, __ATOMIC_RELAXED);
	} else if (now.left) {
		__atomic_add_fetch(&now.left, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

/* The caller begins with the first of the ranges, where the event is. */
static void run_with_event(void (*event)(void))
{
	struct ktask_node ranges[] = { { UNIT, UNITS, 0 },
				       { UNIT + UNITS, UNITS, 1 } };
	DEFINE_KTASK_CTL(ctl, mark_chunk, NULL, 1);

	memset(&now, 0, sizeof(now));
	now.event = event;
	now.at = 40;
	ktask_ctl_set_max_threads(&ctl, 4);
	ktask_ctl_set_chunk_us(&ctl, 1);
	ktest_check(!ktask_run_numa(ranges, 2, &ctl));
	for (unsigned i = 0; i < 2 * UNITS; i++)
		ktest_check(now.done[i] == 1);
	ktest_check(!now.event);
	/* One chunk may have begun before everybody was told to leave. */
	ktest_check(now.outside <= 3);
}

static void put_file(const char *path, const char *text)
{
	tree_put(&laid_machine.tree, path, text);
}

/* 16 CPUs of two nodes become the first 4 of node 0. */
static void lose_a_node(void)
{
	put_file(CPU "online", "0-3\n");
	put_file(NODE "online", "0\n");
	put_file(NODE "node0/cpulist", "0-3\n");
	put_file(NODE "node0/distance", "10\n");
	machine_read_online();
	a_second_passes();
}

static void get_it_back(void)
{
	put_file(CPU "online", "0-15\n");
	put_file(NODE "online", "0-1\n");
	put_file(NODE "node0/cpulist", "0-3,8-11\n");
	put_file(NODE "node0/distance", "10 21\n");
	machine_read_online();
	a_second_passes();
}

static void caps_are(unsigned cpus, unsigned nodes, unsigned limit,
		     unsigned limit_0, unsigned limit_1)
{
	struct ktask_limit limits[16] = { KTASK_LIMIT_INIT };
	char why[64];

	ktask_limits(limits, 16);
	snprintf(why, sizeof(why), "%u CPU%s online, %u NUMA node%s", cpus,
		 cpus == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
	ktest_check(!strcmp(limits[0].name, "cpus"));
	ktest_check(limits[0].threads == cpus);
	ktest_check(!strcmp(limits[0].why, why));
	ktest_check(pool_machine()->limit == limit);
	ktest_check(pool_node(0)->limit == limit_0);
	ktest_check(pool_node(1)->limit == limit_1);
	ktest_check(!pool_machine()->used);
	ktest_check(!pool_node(0)->used && !pool_node(1)->used);
}

static int between_jobs(void *arg)
{
	machine_begin("two-nodes", "0-15", 0);
	caps_are(16, 2, 12, 6, 6);
	run_with_event(NULL);
	lose_a_node();
	run_with_event(NULL);
	caps_are(4, 2, 3, 3, 0);
	get_it_back();
	run_with_event(NULL);
	caps_are(16, 2, 12, 6, 6);
	machine_end();
	return 0;
}

static int during_a_job(void *arg)
{
	machine_begin("two-nodes", "0-15", 0);
	run_with_event(lose_a_node);
	caps_are(4, 2, 3, 3, 0);
	run_with_event(get_it_back);
	caps_are(16, 2, 12, 6, 6);
	machine_end();
	return 0;
}

/* Down to one CPU there is nobody to help, and nobody who looks. */
static void lose_all_but_one(void)
{
	put_file(CPU "online", "0\n");
	put_file(NODE "online", "0\n");
	put_file(NODE "node0/cpulist", "0\n");
	machine_read_online();
	a_second_passes();
}

static int down_to_one_and_back(void *arg)
{
	machine_begin("two-nodes", "0-15", 0);
	run_with_event(NULL);
	run_with_event(lose_all_but_one);
	run_with_event(NULL);
	ktest_check(pool_machine()->limit == 0);
	get_it_back();
	run_with_event(NULL);
	ktest_check(pool_machine()->limit == 12);
	machine_end();
	return 0;
}

/* A new node appears, and numbers are given as nodes come. */
static int a_node_comes(void *arg)
{
	machine_begin("two-nodes", "0-15", 0);
	lose_a_node();
	caps_are(4, 1, 3, 3, 0);
	put_file(NODE "online", "0,7\n");
	put_file(NODE "node7/cpulist", "4-7\n");
	put_file(NODE "node7/distance", "20 10\n");
	put_file(NODE "node0/distance", "10 35\n");
	put_file(CPU "online", "0-7\n");
	machine_read_online();
	a_second_passes();
	a_second_passes();
	run_with_event(NULL);
	caps_are(8, 2, 6, 3, 3);
	ktest_check(kt_node_distance(0, 7) == 35);
	ktest_check(kt_node_distance(7, 0) == 20);
	machine_end();
	return 0;
}

/* More different machines than are kept: the last one stays. */
static int very_many_changes(void *arg)
{
	char text[32];

	machine_begin("one-node", "0-3", 0);
	for (unsigned i = 1; i < 100; i++) {
		snprintf(text, sizeof(text), "0-%u\n", i);
		put_file(CPU "online", text);
		machine_read_online();
		a_second_passes();
		ktest_check(topo_get());
		ktask_limits(NULL, 0);
		ktest_check(topo_get()->nr_cpus <= i + 1);
		ktest_check(topo_get()->nr_cpus >= 4 || i < 4);
	}
	machine_end();
	return 0;
}

/* The lists are gone, or are garbage, in the middle of a job. */
static void lose_sysfs(void)
{
	tree_remove(&laid_machine.tree, "/sys");
	a_second_passes();
}

static int without_sysfs(void *arg)
{
	machine_begin("two-nodes", "0-15", 0);
	run_with_event(lose_sysfs);
	run_with_event(NULL);
	machine_end();
	return 0;
}

#define CASE(name)                                                        \
	static void name##_is_survived(void **state)                      \
	{                                                                 \
		assert_int_equal(ktest_in_child_for(name, NULL, 100), 0); \
	}

CASE(between_jobs)
CASE(during_a_job)
CASE(down_to_one_and_back)
CASE(a_node_comes)
CASE(very_many_changes)
CASE(without_sysfs)

KTEST_MAIN(KTEST(between_jobs_is_survived), KTEST(during_a_job_is_survived),
	   KTEST(down_to_one_and_back_is_survived),
	   KTEST(a_node_comes_is_survived),
	   KTEST(very_many_changes_is_survived),
	   KTEST(without_sysfs_is_survived))
