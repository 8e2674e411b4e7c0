/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Without the right to raise a thread again a started job uses CPUs that idle:
 * it begins when one does, however long after its start; rests while there is
 * none; and is done in any case once somebody waits for it.  If the process may use
 * fewer CPUs meanwhile, those that it has lost do not count.
 */
#include "ktest.h"
#include "threads.h"
#include "tree.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "util/file.h"

#define USER 65530
#define UNIT_NS 100000
#define NAP_US 2000 /* a unit that leaves its CPU to others */
/* Helpers run at normal priority here: they have their share of any machine. */
#define WAIT_NS 30000000000ull

static struct tree tree;

static int spin_chunk(void *start, void *end_pos, void *arg)
{
	uint64_t units = (uint64_t)end_pos - (uint64_t)start;
	uint64_t end_ns = ktest_now_ns() + units * UNIT_NS;

	while (ktest_now_ns() < end_ns)
		;
	return 0;
}

/* Threads that run on the machine, by its account. */
static void put_running(unsigned nr)
{
	char text[64];

	snprintf(text, sizeof(text), "0.00 0.00 0.00 %u/100 1234\n", nr);
	tree_put(&tree, "/proc/loadavg", text);
}

static void become_user(void)
{
	struct rlimit none = { 0, 0 };

	ktest_check(!setrlimit(RLIMIT_NICE, &none));
	if (!geteuid()) {
		ktest_check(!setresgid(USER, USER, USER));
		ktest_check(!setresuid(USER, USER, USER));
	}
	/* Of that user's own. */
	tree_begin(&tree);
	tree_put_cpus(&tree);
	file_root = tree.root;
}

/* As that user, on a machine where others run. */
static struct ktask_job *start_beside_others(struct ktask_ctl *ctl, size_t size)
{
	struct ktask_job *job;

	become_user();
	put_running(1000);
	ktest_check(!ktask_start(&job, NULL, size, ctl));
	return job;
}

static uint64_t units_done(struct ktask_job *job)
{
	struct ktask_progress progress = KTASK_PROGRESS_INIT;

	ktask_poll(job, &progress);
	return progress.units_done;
}

/* Return: false if it does not move for long. */
static bool await_progress(struct ktask_job *job)
{
	uint64_t from = units_done(job), begin_ns = ktest_now_ns();

	while (units_done(job) == from) {
		if (ktest_now_ns() - begin_ns > WAIT_NS)
			return false;
		usleep(1000);
	}
	return true;
}

/* A chunk that was begun may end meanwhile. */
static bool comes_to_rest(struct ktask_job *job)
{
	uint64_t begin_ns = ktest_now_ns();
	uint64_t before;

	do {
		before = units_done(job);
		usleep(100000);
		if (units_done(job) == before)
			return true;
	} while (ktest_now_ns() - begin_ns < WAIT_NS);
	return false;
}

static int begin_and_rest(void *arg)
{
	struct ktask_job *job;
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);

	/* Two minutes of work, were it all done. */
	job = start_beside_others(&ctl, 120000000000 / UNIT_NS);
	usleep(50000);
	ktest_check(units_done(job) == 0);
	put_running(0);
	ktest_check(await_progress(job));
	put_running(1000);
	ktest_check(comes_to_rest(job));
	put_running(0);
	ktest_check(await_progress(job));
	put_running(1000);
	ktask_cancel(job);
	ktest_check(ktask_wait(job) == -ECANCELED);
	tree_end(&tree);
	return 0;
}

static int nap_chunk(void *start, void *end_pos, void *arg)
{
	usleep((useconds_t)((uint64_t)end_pos - (uint64_t)start) * NAP_US);
	return 0;
}

/* Whether a CPU idles is told by the number of running threads where all may be used, and
 * otherwise by the idle time of those that may be. */
static int rest_on_fewer_cpus(void *arg)
{
	const cpu_set_t *all = arg;
	struct ktask_job *job;
	cpu_set_t one;
	DEFINE_KTASK_CTL(ctl, nap_chunk, NULL, 1);

	CPU_ZERO(&one);
	for (unsigned cpu = 0; !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, all))
			CPU_SET(cpu, &one);
	become_user();
	put_running(1);
	/* No CPU has idled since boot; and none does. */
	tree_put_idle(&tree, sysconf(_SC_NPROCESSORS_CONF), 0);
	ktask_ctl_set_max_threads(&ctl, 2);
	ktest_check(!ktask_start(&job, NULL, 120000000 / NAP_US, &ctl));
	ktest_check(await_progress(job));
	threads_bind(&one);
	ktest_check(comes_to_rest(job));
	threads_bind(all);
	ktest_check(await_progress(job));
	ktask_cancel(job);
	ktest_check(ktask_wait(job) == -ECANCELED);
	tree_end(&tree);
	return 0;
}

static int wait_beside_others(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_job *job;
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);

	ktask_ctl_set_result(&ctl, &result);
	job = start_beside_others(&ctl, 1000);
	usleep(20000);
	ktest_check(!ktask_wait(job));
	ktest_check(result.units == 1000);
	tree_end(&tree);
	return 0;
}

static int deadline_beside_others(void *arg)
{
	struct ktask_progress progress = KTASK_PROGRESS_INIT;
	struct ktask_job *job;
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);
	uint64_t begin_ns = ktest_now_ns();

	ktask_ctl_set_deadline(&ctl, 20000000);
	job = start_beside_others(&ctl, 1000000);
	while (ktask_poll(job, &progress) == -EINPROGRESS) {
		ktest_check(ktest_now_ns() - begin_ns < WAIT_NS);
		usleep(1000);
	}
	ktest_check(ktask_wait(job) == -ETIMEDOUT);
	tree_end(&tree);
	return 0;
}

static void in_child(int (*func)(void *arg), void *arg)
{
	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ktest_skip("one CPU: no job has helpers");
	assert_int_equal(ktest_in_child_for(func, arg, 100), 0);
}

static void begins_and_rests(void **state)
{
	in_child(begin_and_rest, NULL);
}

static void rests_where_its_last_cpu_is_busy(void **state)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all) ||
	    CPU_COUNT(&all) < sysconf(_SC_NPROCESSORS_ONLN))
		ktest_skip("this process may not use all CPUs");
	in_child(rest_on_fewer_cpus, &all);
}

static void is_done_when_waited_for(void **state)
{
	in_child(wait_beside_others, NULL);
}

static void ends_at_its_deadline(void **state)
{
	in_child(deadline_beside_others, NULL);
}

KTEST_MAIN(KTEST(begins_and_rests), KTEST(rests_where_its_last_cpu_is_busy),
	   KTEST(is_done_when_waited_for), KTEST(ends_at_its_deadline))
