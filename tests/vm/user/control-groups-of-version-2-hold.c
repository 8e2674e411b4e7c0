/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Real control groups of version 2, each limit by itself: a quota up the tree
 * with others who use it up, CPUs and memory nodes that are taken and given in
 * the middle of a job, threads, memory; a group that is frozen and one that is
 * killed.
 */
#include "sys.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <ktask/ktask.h>
#include <ktask/ops.h>

#include "user/limits/cgroup.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"

#define TOP "/sys/fs/cgroup"
#define GROUP TOP "/ktask-test"
#define INNER GROUP "/a/b"
#define MIB (1ul << 20)
#define UNITS 20000
#define UNIT_US 300
/* Chunks of the caller, who looks every few of them. */
#define SETTLE 60
#define WATCH 300
#define PATIENCE_NS 40000000000ull

static cpu_set_t all;

/* ---- groups ---- */

static int make_groups(void **state)
{
	static const char controllers[] = "+cpu +cpuset +pids +memory";

	all = sys_list(SYS_CPU "/online");
	mkdir(GROUP, 0755);
	mkdir(GROUP "/a", 0755);
	sys_put(GROUP "/cgroup.subtree_control", "%s", controllers);
	sys_put(GROUP "/a/cgroup.subtree_control", "%s", controllers);
	mkdir(INNER, 0755);
	return 0;
}

static int remove_groups(void **state)
{
	sys_put(INNER "/cgroup.kill", "1");
	/* The dead leave it in their own time. */
	for (int i = 0; i < 2000 && rmdir(INNER) && errno == EBUSY; i++)
		usleep(20000);
	rmdir(GROUP "/a");
	rmdir(GROUP);
	return 0;
}

static void need_groups(void)
{
	struct stat st;

	if (stat(INNER "/cpu.max", &st) || stat(INNER "/cpuset.cpus", &st))
		ktest_skip("no control groups of version 2 can be made");
	if (CPU_COUNT(&all) < 4)
		ktest_skip("needs four CPUs");
}

static void join_group(void)
{
	ktest_check(!sys_put(INNER "/cgroup.procs", "0"));
}

static unsigned read_limit(const char *name, char *why)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32);

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (!strcmp(limits[i].name, name)) {
			strcpy(why, limits[i].why);
			return limits[i].threads;
		}
	return 0;
}

static void run_in_child(int (*func)(void *arg))
{
	need_groups();
	assert_int_equal(ktest_in_child_for(func, NULL, 100), 0);
}

/* ---- a job that is watched while something happens to its group ---- */

static struct {
	pid_t caller;
	void (*take)(void), (*give)(void);
	bool (*taken)(void); /* does the library know? */
	uint32_t
		told; /* chunks of the caller since it knows, as long as it does */
	uint32_t watched; /* of these, all in all: SETTLE later */
	uint32_t helped_before, helped_while, helped_after;
	uint32_t threads_now, threads_most;
	bool was_taken, was_given;
} now;

#define COUNT(what) __atomic_add_fetch(&(what), 1, __ATOMIC_RELAXED)
#define READ(what) __atomic_load_n(&(what), __ATOMIC_RELAXED)

static void caller_step(void)
{
	if (!now.take)
		return;
	if (!now.was_taken) {
		if (READ(now.helped_before) < 20)
			return;
		now.take();
		now.was_taken = true;
	} else if (!now.was_given) {
		/* In a guest whose CPUs wait for the host's, others may not take what they
		 * are to take. */
		if (!now.taken()) {
			__atomic_store_n(&now.told, 0, __ATOMIC_RELAXED);
			return;
		}
		if (COUNT(now.told) <= SETTLE || ++now.watched < WATCH)
			return;
		__atomic_store_n(&now.told, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&now.was_given, true, __ATOMIC_RELAXED);
		now.give();
	}
}

static int count_chunk(void *start, void *end, void *arg)
{
	unsigned threads = COUNT(now.threads_now);

	if (threads > READ(now.threads_most))
		now.threads_most = threads;
	if (gettid() == now.caller)
		caller_step();
	else if (READ(now.was_given))
		COUNT(now.helped_after);
	else if (READ(now.told) > SETTLE && now.taken())
		COUNT(now.helped_while);
	else
		COUNT(now.helped_before);
	sys_work(UNIT_US);
	__atomic_sub_fetch(&now.threads_now, 1, __ATOMIC_RELAXED);
	/* Enough was seen. */
	return READ(now.helped_after) > 20 ? -ECANCELED : 0;
}

static void watch_helpers(void (*take)(void), bool (*taken)(void),
			  void (*give)(void))
{
	uint64_t end_ns = ktest_now_ns() + PATIENCE_NS;
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);

	ktask_ctl_set_chunk_us(&ctl, 1);
	memset(&now, 0, sizeof(now));
	now.caller = gettid();
	now.take = take;
	now.taken = taken;
	now.give = give;
	while (now.helped_after <= 20 && ktest_now_ns() < end_ns) {
		now.threads_now = 0;
		ktask_run(NULL, UNITS, &ctl);
	}
	fprintf(stderr, "# chunks of helpers: %u before, %u while, %u after\n",
		now.helped_before, now.helped_while, now.helped_after);
	ktest_check(now.was_given);
	ktest_check(now.helped_after);
	/* One may have begun before it was time to leave. */
	ktest_check(now.helped_while <= 3);
}

/* ---- quota ---- */

static int half_a_cpu_far_up(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);
	char why[128];

	ktest_check(!sys_put(GROUP "/cpu.max", "50000 100000"));
	join_group();
	now.caller = gettid();
	ktask_ctl_set_result(&ctl, &result);
	ktest_check(read_limit("cgroup-quota", why) == 1);
	ktest_check(strstr(why, "0.50 CPUs in group /ktask-test"));
	ktest_check(!ktask_run(NULL, 500, &ctl));
	ktest_check(result.threads == 1 && result.units == 500);
	return 0;
}

static void half_a_cpu_two_groups_up_is_no_helper(void **state)
{
	run_in_child(half_a_cpu_far_up);
}

static int the_least_of_three(void *arg)
{
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);
	char why[128];

	ktest_check(!sys_put(GROUP "/cpu.max", "350000 100000"));
	ktest_check(!sys_put(GROUP "/a/cpu.max", "110000 50000"));
	ktest_check(!sys_put(INNER "/cpu.max", "300000 100000"));
	join_group();
	memset(&now, 0, sizeof(now));
	now.caller = gettid();
	ktest_check(read_limit("cgroup-quota", why) == 2);
	ktest_check(strstr(why, "2.20 CPUs in group /ktask-test/a"));
	for (int i = 0; i < 20; i++)
		ktest_check(!ktask_run(NULL, 100, &ctl));
	ktest_check(now.threads_most <= 2);
	return 0;
}

static void the_least_quota_up_the_tree_holds(void **state)
{
	run_in_child(the_least_of_three);
}

#define HOGS 3
static pid_t hogs[HOGS];

static void signal_hogs(int signal)
{
	for (int i = 0; i < HOGS; i++)
		kill(hogs[i], signal);
}

static void wake_hogs(void)
{
	signal_hogs(SIGCONT);
}

static void stop_hogs(void)
{
	signal_hogs(SIGSTOP);
}

static bool no_capacity(void)
{
	return cgroup_threads(0) == 1;
}

static int beside_others(void *arg)
{
	ktest_check(!sys_put(GROUP "/cpu.max", "200000 100000"));
	join_group();
	for (int i = 0; i < HOGS; i++) {
		hogs[i] = fork();
		while (!hogs[i])
			;
		kill(hogs[i], SIGSTOP);
	}
	watch_helpers(wake_hogs, no_capacity, stop_hogs);
	signal_hogs(SIGKILL);
	return 0;
}

/* Three processes want two CPUs: the group is throttled, nothing is left. */
static void others_in_the_group_take_its_capacity(void **state)
{
	run_in_child(beside_others);
}

/* ---- CPUs and memory nodes ---- */

static void one_cpu(void)
{
	ktest_check(!sys_put(GROUP "/cpuset.cpus", "0"));
}

static void all_cpus(void)
{
	ktest_check(
		!sys_put(GROUP "/cpuset.cpus", "0-%d", CPU_COUNT(&all) - 1));
}

/* Looks come every 5 ms, and a chunk takes 0.3. */
static bool some_time_later(void)
{
	static unsigned chunks;

	return COUNT(chunks) > 100;
}

static int with_fewer_cpus(void *arg)
{
	all_cpus();
	join_group();
	watch_helpers(one_cpu, some_time_later, all_cpus);
	return 0;
}

static void all_cpus_but_one_are_taken_and_given_back(void **state)
{
	run_in_child(with_fewer_cpus);
}

static struct {
	cpu_set_t cpus;
	uint32_t nr_outside, nr_inside;
} placement;

static int count_placement(void *start, void *end, void *arg)
{
	if (gettid() != now.caller)
		COUNT(*(CPU_ISSET(sched_getcpu(), &placement.cpus)
				? &placement.nr_inside
				: &placement.nr_outside));
	sys_work(UNIT_US);
	return 0;
}

static unsigned pages_elsewhere(char *at, size_t len, int node)
{
	unsigned nr = 0;

	for (size_t i = 0; i < len; i += 4096) {
		void *page = at + i;
		int where = -1;

		syscall(SYS_move_pages, 0, 1, &page, NULL, &where, 0);
		nr += where != node;
	}
	return nr;
}

static int in_node_1(void *arg)
{
	uint64_t end_ns = ktest_now_ns() + PATIENCE_NS;
	size_t len = 16 * MIB;
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	DEFINE_KTASK_CTL(ctl, count_placement, NULL, 1);

	placement.cpus = sys_list(SYS_NODE "/node1/cpulist");
	ktest_check(!sys_put(GROUP "/cpuset.cpus", "2-3"));
	ktest_check(!sys_put(GROUP "/cpuset.mems", "1"));
	join_group();
	now.caller = gettid();
	while (!placement.nr_inside && ktest_now_ns() < end_ns)
		ktest_check(!ktask_run(NULL, 300, &ctl));
	ktest_check(placement.nr_inside && !placement.nr_outside);
	ktest_check(at != MAP_FAILED && !ktask_populate(at, len, 0));
	ktest_check(!pages_elsewhere(at, len, 1));
	return 0;
}

static void a_group_has_one_node_only(void **state)
{
	cpu_set_t cpus = sys_list(SYS_NODE "/node1/cpulist");

	if (!CPU_ISSET(2, &cpus) || !CPU_ISSET(3, &cpus))
		ktest_skip("node 1 is not CPUs 2 and 3");
	run_in_child(in_node_1);
}

/* ---- threads ---- */

/* As many as there are, and @more. */
static void threads_left(unsigned more)
{
	char text[32];

	join_group();
	sys_get(INNER "/pids.current", text, sizeof(text));
	ktest_check(!sys_put(GROUP "/pids.max", "%d", atoi(text) + (int)more));
}

static unsigned run_with_threads_left(unsigned more)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	unsigned most = 0;
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);

	threads_left(more);
	memset(&now, 0, sizeof(now));
	now.caller = gettid();
	ktask_ctl_set_result(&ctl, &result);
	for (int i = 0; i < 20; i++) {
		ktest_check(!ktask_run(NULL, 100, &ctl));
		ktest_check(result.units == 100);
		if (result.threads > most)
			most = result.threads;
	}
	return most;
}

static int no_thread_left(void *arg)
{
	char why[128];

	ktest_check(run_with_threads_left(0) == 1);
	ktest_check(read_limit("cgroup-pids", why) == 1);
	/* Nothing was even tried. */
	sys_get(GROUP "/pids.events", why, sizeof(why));
	ktest_check(strstr(why, "max 0"));
	return 0;
}

static int one_thread_left(void *arg)
{
	ktest_check(run_with_threads_left(1) <= 2);
	return 0;
}

static void pids_allow_no_helper(void **state)
{
	run_in_child(no_thread_left);
}

static void pids_allow_one_helper(void **state)
{
	run_in_child(one_thread_left);
}

/* ---- memory ---- */

static int too_much_memory(void *arg)
{
	size_t len = 128 * MIB;
	char why[128], *at;

	ktest_check(!sys_put(GROUP "/memory.max", "%lu", 32 * MIB));
	join_group();
	ktest_check(read_limit("cgroup-memory", why) <= 33);
	ktest_check(strstr(why, "0.03 GiB of memory left"));
	at = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arg)
		return madvise(at, len, MADV_POPULATE_WRITE) ? 7 : 1;
	return ktask_populate(at, len, 0) ? 7 : 1;
}

/* An error, or the kernel ends the process: with helpers as without. */
static void memory_ends_as_the_plain_call_does(void **state)
{
	int with, without;

	need_groups();
	with = ktest_in_child_for(too_much_memory, NULL, 100);
	without = ktest_in_child_for(too_much_memory, (void *)1, 100);
	assert_int_equal(with, without);
	assert_true(with == 7 << 8 || with == SIGKILL);
}

/* ---- frozen and killed ---- */

static uint32_t *shared; /* chunks */

static int count_and_nap(void *start, void *end, void *arg)
{
	COUNT(*shared);
	usleep(1000);
	return 0;
}

static int long_job(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, count_and_nap, NULL, 1);

	ktask_ctl_set_result(&ctl, &result);
	join_group();
	ktest_check(!ktask_run(NULL, (size_t)arg, &ctl));
	ktest_check(result.units == (size_t)arg);
	return 0;
}

static pid_t start_long_job(size_t units)
{
	uint64_t end_ns = ktest_now_ns() + PATIENCE_NS;
	pid_t pid;

	need_groups();
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid)
		_exit(long_job((void *)units));
	while (READ(*shared) < 50 && ktest_now_ns() < end_ns)
		usleep(1000);
	assert_true(READ(*shared) >= 50);
	return pid;
}

static void wait_for_event(const char *event)
{
	uint64_t end_ns = ktest_now_ns() + PATIENCE_NS;
	char text[128];

	do {
		usleep(1000);
		sys_get(INNER "/cgroup.events", text, sizeof(text));
	} while (!strstr(text, event) && ktest_now_ns() < end_ns);
	assert_non_null(strstr(text, event));
}

static void a_frozen_job_goes_on_later(void **state)
{
	pid_t pid = start_long_job(500);
	uint32_t chunks;

	for (int i = 0; i < 5; i++) {
		assert_int_equal(sys_put(INNER "/cgroup.freeze", "1"), 0);
		wait_for_event("frozen 1");
		chunks = READ(*shared);
		usleep(50000);
		assert_int_equal(READ(*shared), chunks);
		assert_int_equal(sys_put(INNER "/cgroup.freeze", "0"), 0);
		usleep(10000);
	}
	assert_int_equal(ktest_wait_for(pid, 60), 0);
}

static void tell_permits(void)
{
	struct registry *registry = registry_open();

	for (int i = 0; i < CPU_COUNT(&all); i++)
		fprintf(stderr, "# permit %d: held %u, by thread %x\n", i,
			registry->permits[i].holder,
			(unsigned)registry->permits[i].mutex.__data.__lock);
}

static int all_permits_are_free(void *arg)
{
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);
	unsigned nr = 0;

	ktest_check(!ktask_run(NULL, 100, &ctl));
	ktask_trim();
	while (permits_take((uint32_t)gettid()) >= 0)
		nr++;
	if (nr != permits_used())
		tell_permits();
	ktest_check(nr == permits_used());
	/* 80 % of the CPUs. */
	ktest_check(nr == (unsigned)CPU_COUNT(&all) * 4 / 5);
	return 0;
}

static void a_killed_group_leaves_no_permit_behind(void **state)
{
	for (int i = 0; i < 5; i++) {
		pid_t pid = start_long_job(1000000);

		assert_int_equal(sys_put(INNER "/cgroup.kill", "1"), 0);
		assert_int_equal(ktest_wait_for(pid, 60), SIGKILL);
		assert_int_equal(ktest_in_child(all_permits_are_free, NULL), 0);
	}
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, make_groups, remove_groups)

KTEST_MAIN(T(half_a_cpu_two_groups_up_is_no_helper),
	   T(the_least_quota_up_the_tree_holds),
	   T(others_in_the_group_take_its_capacity),
	   T(all_cpus_but_one_are_taken_and_given_back),
	   T(a_group_has_one_node_only), T(pids_allow_no_helper),
	   T(pids_allow_one_helper), T(memory_ends_as_the_plain_call_does),
	   T(a_frozen_job_goes_on_later),
	   T(a_killed_group_leaves_no_permit_behind))
