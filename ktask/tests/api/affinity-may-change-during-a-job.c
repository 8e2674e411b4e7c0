/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All CPUs but one are taken from the caller, from every thread, or from the
 * control group in the middle of a job, and given back later in it: each unit
 * is done once, helpers leave when the caller has one CPU, and come again.
 */
#include "support/work.h"
#include "threads.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#define UNITS 3000
#define TRIES 100
/* Chunks of the caller: looks come every 5 ms, a chunk takes 0.1. */
#define FIRST 50
#define SETTLED 200
#define LAST 800

static cpu_set_t all, one;

static struct {
	void (*take)(void);
	void (*give)(void);
	unsigned chunks; /* of the caller */
	unsigned while_taken, after; /* chunks of helpers */
} now;

static unsigned read_phase(void)
{
	return __atomic_load_n(&now.chunks, __ATOMIC_RELAXED);
}

static int count_and_change(struct work *work, size_t from, size_t to)
{
	unsigned at = read_phase();

	/* The helper's thread must find a CPU that idles. */
	nap_us(100);
	if (!work_is_helper(work)) {
		at = __atomic_add_fetch(&now.chunks, 1, __ATOMIC_RELAXED);
		if (at == FIRST)
			now.take();
		if (at == LAST)
			now.give();
	} else if (at > LAST) {
		__atomic_add_fetch(&now.after, 1, __ATOMIC_RELAXED);
	} else if (at > SETTLED && at < LAST) {
		__atomic_add_fetch(&now.while_taken, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static void run_once(void)
{
	struct work work = { .also = count_and_change };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	now.chunks = now.while_taken = now.after = 0;
	work_begin(&work, UNITS);
	ktask_ctl_set_chunk_us(&ctl, 1);
	assert_int_equal(ktask_run(WORK_BASE, UNITS, &ctl), 0);
	assert_true(work_done_once(&work));
	work_end(&work);
}

static void run_jobs(void (*take)(void), void (*give)(void))
{
	unsigned came_again = 0;

	now.take = take;
	now.give = give;
	for (int i = 0; i < TRIES && !came_again; i++) {
		run_once();
		/* The last chunk of each may have begun before it was time to
		 * leave, also of those in the place of who naps. */
		assert_true(now.while_taken <
			    (unsigned)CPU_COUNT(&all) + helpers_now(NULL, 0));
		came_again = now.after;
	}
	assert_true(came_again);
	/* The next job has all CPUs. */
	assert_int_equal(work_met(), 0);
}

static int choose_cpu(void **state)
{
	unsigned cpu = 0;

	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return 0;
}

/* ---- of the caller ---- */

static void bind_caller(void)
{
	sched_setaffinity(0, sizeof(one), &one);
}

static void free_caller(void)
{
	sched_setaffinity(0, sizeof(all), &all);
}

static void taken_from_the_caller(void **state)
{
	need_sure_helper();
	run_jobs(bind_caller, free_caller);
}

/* ---- of every thread, as `taskset -a` does ---- */

static void bind_all(void)
{
	threads_bind(&one);
}

static void free_all(void)
{
	threads_bind(&all);
}

static void taken_from_every_thread(void **state)
{
	need_sure_helper();
	run_jobs(bind_all, free_all);
}

/* ---- of the control group: helpers lose the only CPU they were bound to ---- */

static char group[128], procs_before[160];

static bool put_file(const char *directory, const char *name, const char *text)
{
	char path[256];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

static void shrink_group(void)
{
	char text[16];
	unsigned cpu = 0;

	while (!CPU_ISSET(cpu, &one))
		cpu++;
	snprintf(text, sizeof(text), "%u", cpu);
	assert_true(put_file(group, "cpuset.cpus", text));
}

static void grow_group(void)
{
	char text[1024] = "";

	for (unsigned cpu = 0; cpu < 200; cpu++)
		if (CPU_ISSET(cpu, &all))
			sprintf(text + strlen(text), "%s%u", *text ? "," : "",
				cpu);
	assert_true(put_file(group, "cpuset.cpus", text));
	/* Version 1 widens the threads of the group by itself; what was set
	 * for a thread is for that thread to set again. */
	free_caller();
}

/* Version 1 only: of version 2 the machine's first process has the CPUs. */
static bool make_group(void)
{
	static const char mount[] = "/sys/fs/cgroup/cpuset";

	snprintf(group, sizeof(group), "%s/ktask-test-%d", mount, getpid());
	snprintf(procs_before, sizeof(procs_before), "%s", mount);
	if (mkdir(group, 0755))
		return false;
	grow_group();
	return put_file(group, "cpuset.mems", "0") &&
	       put_file(group, "cgroup.procs", "0");
}

static void taken_from_the_control_group(void **state)
{
	need_sure_helper();
	if (!make_group()) {
		rmdir(group);
		ktest_skip("no control group for CPUs can be made");
	}
	run_jobs(shrink_group, grow_group);
	put_file(procs_before, "cgroup.procs", "0");
}

static int remove_group(void **state)
{
	put_file(procs_before, "cgroup.procs", "0");
	ktask_trim();
	rmdir(group);
	free_caller();
	return 0;
}

/* ---- between jobs: whoever changed it does not say so ---- */

static cpu_set_t helper_cpus;

static int read_own_cpus(struct work *work, size_t from, size_t to)
{
	if (work_is_helper(work))
		sched_getaffinity(0, sizeof(helper_cpus), &helper_cpus);
	return 0;
}

/* Return: the CPUs that the helper of a job on the @cpus of its control block
 * was bound to. */
static cpu_set_t bound_to(const cpu_set_t *cpus)
{
	struct work work = { .also = read_own_cpus, .meet = true };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	CPU_ZERO(&helper_cpus);
	work_begin(&work, 64);
	ktask_ctl_set_cpus(&ctl, cpus, sizeof(*cpus));
	assert_int_equal(ktask_run(WORK_BASE, 64, &ctl), 0);
	work_end(&work);
	return helper_cpus;
}

static void a_changed_helper_is_bound_again(void **state)
{
	cpu_set_t other, bound;

	need_sure_helper();
	CPU_XOR(&other, &all, &one);
	free_caller();
	bound_to(&other);
	bind_all();
	free_caller();
	nap_us(1100000);
	/* Of its node, if there are several. */
	bound = bound_to(&other);
	assert_true(CPU_COUNT(&bound));
	CPU_OR(&bound, &bound, &other);
	assert_true(CPU_EQUAL(&bound, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(taken_from_the_caller),
		KTEST(taken_from_every_thread),
		KTEST(a_changed_helper_is_bound_again),
		cmocka_unit_test_teardown(taken_from_the_control_group,
					  remove_group),
	};

	return cmocka_run_group_tests(tests, choose_cpu, NULL);
}
