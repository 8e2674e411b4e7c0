/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that has helpers loses them when its control group is throttled, when
 * it is moved into a group with less, when the machine goes on battery, and
 * when a helper gets no CPU because others run; the next job then begins
 * without helpers, and has them again when the others leave.
 */
#include "ktest.h"
#include "tree.h"

#include <sched.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "util/file.h"
#include "user/user_job.h"

#define GROUP "/cg/box"
#define NO_HELPERS 77
/* Reports, 10 ms apart, that must agree. */
#define STEADY 20
#define WAIT_NS 30000000000ull
#define CHILD_SECONDS 250
/* Less than the second after which a job tries again beside others. */
#define TRIES_AGAIN_NS 900000000ull

static struct tree tree;

static int make_tree(void **state)
{
	unsetenv("KTASK_MAX_THREADS");
	unsetenv("KTASK_ENERGY");
	tree_begin(&tree);
	tree_put(&tree, "/proc/self/cgroup", "0::/box\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	tree_put(&tree, GROUP "/cpu.max", "200000 100000\n");
	tree_put(&tree, "/cg/small/cpu.max", "50000 100000\n");
	tree_put_cpus(&tree);
	file_root = tree.root;
	return 0;
}

static int remove_tree(void **state)
{
	tree_end(&tree);
	return 0;
}

struct watch {
	void (*change)(unsigned step); /* the world, from outside */
	uint64_t begin_ns;
	uint64_t had_ns; /* when it last had helpers */
	unsigned steps; /* changes made */
	/* Reports in a row: it has helpers; it wants some and has none. */
	unsigned many, kept;
	bool gave_up; /* no helpers to begin with */
	bool late; /* nothing followed the changes */
};

static int watch_progress(const struct ktask_progress *now, void *arg)
{
	const struct user_job *job = job_current()->job;
	struct watch *watch = arg;
	bool many = now->threads > 1;

	if (!job) /* the last report, behind the job */
		return 0;
	watch->many = many ? watch->many + 1 : 0;
	if (many)
		watch->had_ns = ktest_now_ns();
	/* That nobody wanted more would not count. */
	watch->kept = !many && job->ctx.wanted > 1 ? watch->kept + 1 : 0;
	if (!watch->steps && watch->many < STEADY) {
		watch->gave_up = ktest_now_ns() - watch->begin_ns > WAIT_NS;
		return watch->gave_up;
	}
	watch->change(watch->steps++);
	watch->late = ktest_now_ns() - watch->begin_ns > 3 * WAIT_NS;
	return watch->late || (watch->steps > STEADY && watch->kept >= STEADY);
}

static int spin_chunk(void *start, void *end_pos, void *arg)
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
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);

	ktask_ctl_set_progress(&ctl, watch_progress, &watch, 10);
	/* Of itself a job may find one thread enough. */
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktest_check(ktask_run(NULL, 1ull << 40, &ctl) == -ECANCELED);
	ktest_check(!watch.late);
	return watch.gave_up ? NO_HELPERS : 0;
}

static void loses_its_helper(void (*change)(unsigned step))
{
	cpu_set_t cpus;
	int status;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (CPU_COUNT(&cpus) < 2)
		ktest_skip("one CPU: no job has helpers");
	status = ktest_in_child_for(watched_run, (void *)change, CHILD_SECONDS);
	if (status == NO_HELPERS << 8)
		ktest_skip("the machine is too busy for a helper");
	assert_int_equal(status, 0);
}

static void throttle_group(unsigned step)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "nr_periods %u\nnr_throttled %u\nthrottled_usec %u\n",
		 step + 1, step + 1, (step + 1) * 50000);
	tree_put(&tree, GROUP "/cpu.stat", text);
}

static void when_throttled(void **state)
{
	loses_its_helper(throttle_group);
}

static void move_process(unsigned step)
{
	if (!step)
		tree_put(&tree, "/proc/self/cgroup", "0::/small\n");
}

static void when_moved(void **state)
{
	loses_its_helper(move_process);
}

static void unplug_power(unsigned step)
{
	if (step)
		return;
	tree_put(&tree, "/sys/class/power_supply/BAT0/type", "Battery\n");
	tree_put(&tree, "/sys/class/power_supply/BAT0/status", "Discharging\n");
}

static void when_on_battery(void **state)
{
	loses_its_helper(unplug_power);
}

/* ---- an overload ---- */

static int starving; /* helpers shall seem so */
static int starved; /* one did */

/* Chunks of helpers end late, as those do whose thread gets no CPU. */
static int starved_spin(void *start, void *end_pos, void *arg)
{
	if (kt_load(&starving) && gettid() != getpid()) {
		kt_store(&starved, 1);
		usleep(60000);
	}
	return spin_chunk(start, end_pos, arg);
}

static void put_running(const char *text)
{
	tree_put(&tree, "/proc/loadavg", text);
}

static void others_come(unsigned step)
{
	if (step)
		return;
	put_running("0.00 0.00 0.00 9/100 1234\n");
	kt_store(&starving, 1);
}

/* In a job that begins beside them: no helper, until they leave. */
static int overload_progress(const struct ktask_progress *now, void *arg)
{
	const struct user_job *job = job_current()->job;
	struct watch *watch = arg;

	if (!job)
		return 0;
	if (!watch->steps) {
		ktest_check(job->alone || job->ctx.wanted > 1);
		ktest_check(now->threads == 1 ||
			    ktest_now_ns() > watch->had_ns + TRIES_AGAIN_NS);
		watch->kept++;
	} else {
		watch->many = now->threads > 1 ? watch->many + 1 : 0;
	}
	if (watch->kept == STEADY && !watch->steps++) {
		put_running("0.00 0.00 0.00 1/100 1234\n");
		kt_store(&starving, 0);
	}
	watch->gave_up = ktest_now_ns() - watch->begin_ns > WAIT_NS;
	/* A helper that was asked to come may have no CPU. */
	watch->late = watch->gave_up && (job->alone || job->ctx.wanted < 2);
	return watch->many >= STEADY || watch->gave_up;
}

static int overloaded_runs(void *arg)
{
	struct watch first = { .change = others_come,
			       .begin_ns = ktest_now_ns() };
	struct watch second = { 0 };
	DEFINE_KTASK_CTL(ctl, starved_spin, NULL, 1);

	ktask_ctl_set_progress(&ctl, watch_progress, &first, 10);
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktest_check(ktask_run(NULL, 1ull << 40, &ctl) == -ECANCELED);
	ktest_check(!first.late || !kt_load(&starved));
	if (first.gave_up || first.late)
		return NO_HELPERS;
	second.begin_ns = ktest_now_ns();
	second.had_ns = first.had_ns;
	ktask_ctl_set_progress(&ctl, overload_progress, &second, 10);
	ktest_check(ktask_run(NULL, 1ull << 40, &ctl) == -ECANCELED);
	ktest_check(!second.late);
	return second.gave_up ? NO_HELPERS : 0;
}

static void when_others_run(void **state)
{
	cpu_set_t cpus;
	int status;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (CPU_COUNT(&cpus) < 2)
		ktest_skip("one CPU: no job has helpers");
	if (geteuid())
		ktest_skip("needs the right to raise priorities");
	status = ktest_in_child_for(overloaded_runs, NULL, CHILD_SECONDS);
	if (status == NO_HELPERS << 8)
		ktest_skip("the machine is too busy for a helper");
	assert_int_equal(status, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(when_throttled), T(when_moved), T(when_on_battery),
	   T(when_others_run))
