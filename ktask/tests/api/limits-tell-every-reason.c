/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_limits() names what limits a job and says why, from the files of a
 * whole system; a job gets no more than that.
 */
#include "ktest.h"
#include "tree.h"

#include <sched.h>

#include <ktask/ktask.h>

#include "util/file.h"
#include "user/pool/user_prio.h"

#define GROUP "/cg/box"

static struct tree tree;

static int make_tree(void **state)
{
	unsetenv("KTASK_CAP_PERCENT");
	unsetenv("KTASK_MAX_THREADS");
	unsetenv("KTASK_ENERGY");
	tree_begin(&tree);
	tree_put(&tree, "/proc/self/cgroup", "0::/box\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	tree_put(&tree, "/sys/devices/system/cpu/online", "0-3\n");
	file_root = tree.root;
	return 0;
}

static int remove_tree(void **state)
{
	unsetenv("KTASK_MAX_THREADS");
	unsetenv("KTASK_ENERGY");
	tree_end(&tree);
	return 0;
}

/* The library reads its files once a process: each look is in a child. */
static struct ktask_limit *find_limit(const char *name)
{
	static struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32);

	ktest_check(nr <= 32);
	for (unsigned i = 0; i < nr; i++)
		if (!strcmp(limits[i].name, name))
			return &limits[i];
	return NULL;
}

struct expected {
	const char *name;
	unsigned threads; /* 0: the entry must not be there */
	const char *why; /* is in the reason */
};

static int check_limit(void *arg)
{
	struct expected *expected = arg;
	struct ktask_limit *limit = find_limit(expected->name);

	errno = 4711;
	ktask_limits(NULL, 0);
	ktest_check(errno == 4711);
	ktest_check(!limit == !expected->threads);
	if (!limit)
		return 0;
	fprintf(stderr, "# %s: %u: %s\n", limit->name, limit->threads,
		limit->why);
	ktest_check(limit->threads == expected->threads);
	ktest_check(strstr(limit->why, expected->why));
	return 0;
}

#define ANY 65536

static void expect_limit(const char *name, unsigned threads, const char *why)
{
	struct expected expected = { name, threads, why };

	assert_int_equal(ktest_in_child(check_limit, &expected), 0);
}

static void nothing_limits(void **state)
{
	expect_limit("cgroup-quota", ANY, "no CPU quota");
	expect_limit("cgroup-pids", ANY, "no limit");
	expect_limit("cgroup-memory", ANY, "no memory limit");
	expect_limit("energy", ANY, "auto");
	expect_limit("config", 0, NULL);
	expect_limit("env", 0, NULL);
}

static void control_groups(void **state)
{
	tree_put(&tree, GROUP "/cpu.max", "50000 100000\n");
	tree_put(&tree, GROUP "/pids.max", "10\n");
	tree_put(&tree, GROUP "/pids.current", "7\n");
	tree_put(&tree, GROUP "/memory.max", "2147483648\n");
	tree_put(&tree, GROUP "/memory.current", "1073741824\n");
	expect_limit("cgroup-quota", 1, "0.50 CPUs in group /box");
	expect_limit("cgroup-memory", 1025, "1.00 GiB of memory left");
	expect_limit("cgroup-pids", 4, "still make: 3");
}

static void long_names_are_cut_at_the_front(void **state)
{
	char name[201], text[256];

	memset(name, 'x', sizeof(name) - 1);
	memcpy(name + sizeof(name) - 1 - 10, "tail.scope", 10);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "0::/%s\n", name);
	tree_put(&tree, "/proc/self/cgroup", text);
	snprintf(text, sizeof(text), "/cg/%s/cpu.max", name);
	tree_put(&tree, text, "200000 100000\n");
	expect_limit("cgroup-quota", 2, "xtail.scope");
}

static void saving_energy_limits(void **state)
{
	tree_put(&tree, "/sys/firmware/acpi/platform_profile", "low-power\n");
	expect_limit("energy", 1, "profile");
	setenv("KTASK_ENERGY", "never", 1);
	expect_limit("energy", 1, "never");
	/* The environment may not override what the machine says. */
	setenv("KTASK_ENERGY", "always", 1);
	expect_limit("energy", 1, "profile");
}

static void the_environment_limits(void **state)
{
	setenv("KTASK_MAX_THREADS", "3", 1);
	expect_limit("env", 3, "KTASK_MAX_THREADS=3");
}

static void the_administrator_limits(void **state)
{
	if (geteuid())
		ktest_skip("the file must be root's");
	tree_put(&tree, "/etc/ktask.conf",
		 "cap_percent = 0\nmax_threads = 7\nenergy = always\n");
	tree_put(&tree, "/sys/firmware/acpi/platform_profile", "low-power\n");
	expect_limit("config", 7, "max_threads 7");
	expect_limit("config", 7, "cap_percent 0");
	expect_limit("config", 7, "energy always");
	expect_limit("cap", 1, "0 %");
	expect_limit("energy", ANY, "always");
	tree_put(&tree, "/etc/ktask.conf", "# nothing\n");
	expect_limit("config", 0, NULL);
	tree_put(&tree, "/etc/ktask.conf", "energy = never\n");
	expect_limit("config", ANY, "energy never");
	expect_limit("energy", 1, "never");
}

static void a_refused_file_is_told(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/etc/ktask.conf", tree.root);
	tree_put(&tree, "/etc/ktask.conf", "max_threads = 7\n");
	assert_int_equal(chmod(path, 0666), 0);
	expect_limit("config", ANY, "not used: ");
	expect_limit("energy", ANY, "auto");
}

/* ---- what a job gets ---- */

static int spin_chunk(void *start, void *end_pos, void *arg)
{
	uint64_t end_ns = ktest_now_ns() + 20000;

	while (ktest_now_ns() < end_ns)
		;
	return 0;
}

static unsigned threads_of_process(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned nr = 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return nr;
}

static int run_alone(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	unsigned threads = threads_of_process();
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);

	ktask_ctl_set_result(&ctl, &result);
	ktest_check(!ktask_run(NULL, 1000, &ctl));
	ktest_check(result.threads == 1);
	ktest_check(result.units == 1000);
	/* Not only idle: no helper was made. */
	ktest_check(threads_of_process() == threads);
	return 0;
}

/* Else the tests below would show nothing. */
static int make_helpers(void *arg)
{
	unsigned threads = threads_of_process();
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);

	ktest_check(!ktask_run(NULL, 1000, &ctl));
	ktest_check(threads_of_process() > threads);
	return 0;
}

static void without_a_limit_helpers_are_made(void **state)
{
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (CPU_COUNT(&cpus) < 2 || !prio_may_lend())
		ktest_skip("needs two CPUs, and the right to lend priority");
	assert_int_equal(ktest_in_child(make_helpers, NULL), 0);
}

static void half_a_cpu_is_no_helper(void **state)
{
	tree_put(&tree, GROUP "/cpu.max", "50000 100000\n");
	assert_int_equal(ktest_in_child(run_alone, NULL), 0);
}

static void no_thread_left_is_no_helper(void **state)
{
	tree_put(&tree, GROUP "/pids.max", "10\n");
	tree_put(&tree, GROUP "/pids.current", "10\n");
	assert_int_equal(ktest_in_child(run_alone, NULL), 0);
}

static void no_memory_left_is_no_helper(void **state)
{
	tree_put(&tree, GROUP "/memory.max", "2000000\n");
	tree_put(&tree, GROUP "/memory.current", "1500000\n");
	assert_int_equal(ktest_in_child(run_alone, NULL), 0);
}

static void saving_energy_is_no_helper(void **state)
{
	tree_put(&tree, "/sys/class/power_supply/BAT0/type", "Battery\n");
	tree_put(&tree, "/sys/class/power_supply/BAT0/status", "Discharging\n");
	assert_int_equal(ktest_in_child(run_alone, NULL), 0);
}

static void cap_of_nothing_is_no_helper(void **state)
{
	if (geteuid())
		ktest_skip("the file must be root's");
	tree_put(&tree, "/etc/ktask.conf", "cap_percent = 0\n");
	assert_int_equal(ktest_in_child(run_alone, NULL), 0);
}

static int run_any(void *arg)
{
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);

	return ktask_run(NULL, 500, &ctl);
}

static void an_empty_system_is_no_obstacle(void **state)
{
	tree_remove(&tree, "/proc");
	assert_int_equal(ktest_in_child(run_any, NULL), 0);
	expect_limit("cgroup-quota", ANY, "/proc is not to be seen here");
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(nothing_limits), T(control_groups),
	   T(long_names_are_cut_at_the_front), T(saving_energy_limits),
	   T(the_environment_limits), T(the_administrator_limits),
	   T(a_refused_file_is_told), T(without_a_limit_helpers_are_made),
	   T(half_a_cpu_is_no_helper), T(no_thread_left_is_no_helper),
	   T(no_memory_left_is_no_helper), T(saving_energy_is_no_helper),
	   T(cap_of_nothing_is_no_helper), T(an_empty_system_is_no_obstacle))
