/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that has helpers loses them when its control group is throttled, when
 * it is moved into a group with less, and when the machine goes on battery.
 */
#include "ktest.h"
#include "tree.h"

#include <sched.h>

#include <ktask/ktask.h>

#include "lib/file.h"
#include "lib/run.h"

#define GROUP "/cg/box"
#define NO_HELPERS 77
/* Reports, 10 ms apart, that must agree. */
#define STEADY 20
#define WAIT_NS 10000000000ull

static struct tree tree;

static int begin(void **state)
{
	unsetenv("KTASK_MAX_THREADS");
	unsetenv("KTASK_ENERGY");
	tree_begin(&tree);
	tree_put(&tree, "/proc/self/cgroup", "0::/box\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	tree_put(&tree, GROUP "/cpu.max", "200000 100000\n");
	tree_put(&tree, "/cg/small/cpu.max", "50000 100000\n");
	file_root = tree.root;
	return 0;
}

static int end(void **state)
{
	tree_end(&tree);
	return 0;
}

struct watch {
	void (*change)(unsigned step); /* the world, from outside */
	uint64_t begin_ns;
	unsigned steps; /* changes made */
	/* Reports in a row: it has helpers; it wants some and has none. */
	unsigned many, kept;
	bool gave_up;
};

static int progress(const struct ktask_progress *now, void *arg)
{
	const struct run *run = run_context()->run;
	struct watch *watch = arg;
	bool many = now->threads > 1;

	if (!run) /* the last report, behind the job */
		return 0;
	watch->many = many ? watch->many + 1 : 0;
	/* Of itself a job may find one thread enough: that does not count. */
	watch->kept = !many && run->wanted > 1 ? watch->kept + 1 : 0;
	if (!watch->steps && watch->many < STEADY) {
		watch->gave_up = ktest_now_ns() - watch->begin_ns > WAIT_NS;
		return watch->gave_up;
	}
	watch->change(watch->steps++);
	return watch->steps > STEADY && watch->kept >= STEADY;
}

static int spin(void *start, void *end_pos, void *arg)
{
	uint64_t units = (uint64_t)end_pos - (uint64_t)start;
	uint64_t end_ns = ktest_now_ns() + units * 20000;

	while (ktest_now_ns() < end_ns)
		;
	return 0;
}

static int watched_run(void *arg)
{
	struct watch watch = { .change = arg, .begin_ns = ktest_now_ns() };
	DEFINE_KTASK_CTL(ctl, spin, NULL, 1);

	ktask_ctl_set_progress(&ctl, progress, &watch, 10);
	ktask_ctl_set_max_threads(&ctl, 2);
	ktest_check(ktask_run(NULL, 1ull << 40, &ctl) == -ECANCELED);
	return watch.gave_up ? NO_HELPERS : 0;
}

static void loses_its_helper(void (*change)(unsigned step))
{
	cpu_set_t cpus;
	int status;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (CPU_COUNT(&cpus) < 2)
		ktest_skip("one CPU: no job has helpers");
	status = ktest_in_child(watched_run, (void *)change);
	if (status == NO_HELPERS << 8)
		ktest_skip("the machine is too busy for a helper");
	assert_int_equal(status, 0);
}

static void throttle(unsigned step)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "nr_periods %u\nnr_throttled %u\nthrottled_usec %u\n",
		 step + 1, step + 1, (step + 1) * 50000);
	tree_put(&tree, GROUP "/cpu.stat", text);
}

static void when_throttled(void **state)
{
	loses_its_helper(throttle);
}

static void move(unsigned step)
{
	if (!step)
		tree_put(&tree, "/proc/self/cgroup", "0::/small\n");
}

static void when_moved(void **state)
{
	loses_its_helper(move);
}

static void unplug(unsigned step)
{
	if (step)
		return;
	tree_put(&tree, "/sys/class/power_supply/BAT0/type", "Battery\n");
	tree_put(&tree, "/sys/class/power_supply/BAT0/status", "Discharging\n");
}

static void when_on_battery(void **state)
{
	loses_its_helper(unplug);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

KTEST_MAIN(T(when_throttled), T(when_moved), T(when_on_battery))
