/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A process that may not raise threads has helpers of its own priority, on
 * idle CPUs only, and also if it gave its rights up after its first jobs.
 *
 * Each case is a process of its own and of a user who has no other process.
 */
#include "support/work.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define USER 65528
#define NO_HELPER 77
#define NR_TRIES 400
#define SEE_NS 10000000000ull

struct sample {
	int policy, nice;
	uint32_t is_sampled;
	uint32_t taken;
};

/*
 * Helpers of this user come when a CPU is idle: no chunk waits for one.  They
 * take so long that the caller has to wait for them, and would lend.
 */
static int sample_helper(struct work *work, size_t from, size_t to)
{
	struct sample *sample = work->arg;

	if (!work_is_helper(work)) {
		nap_us(100);
		return 0;
	}
	/* The job blocks, so there may be more than one. */
	if (__atomic_exchange_n(&sample->taken, 1, __ATOMIC_SEQ_CST)) {
		nap_us(100);
		return 0;
	}
	sample->policy = sched_getscheduler(0);
	sample->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
	set_flag(&sample->is_sampled);
	nap_us(3000);
	return 0;
}

/* Jobs until a helper was seen.  Return: false if none came. */
static bool see_helper(struct sample *sample)
{
	uint64_t end_ns = ktest_now_ns() + SEE_NS;

	sample->is_sampled = 0;
	sample->taken = 0;
	while (!sample->is_sampled && ktest_now_ns() < end_ns) {
		struct work work = { .also = sample_helper, .arg = sample };

		work_begin(&work, 20);
		ktest_check(!work_run(&work));
		ktest_check(work_done_once(&work));
		work_end(&work);
	}
	return sample->is_sampled;
}

static void become_user(void)
{
	struct rlimit none = { 0, 0 };

	ktest_check(!setrlimit(RLIMIT_NICE, &none));
	ktest_check(!setresgid(USER, USER, USER));
	ktest_check(!setresuid(USER, USER, USER));
}

static int as_user(void *arg)
{
	struct sample sample;

	become_user();
	if (!see_helper(&sample))
		return NO_HELPER;
	ktest_check(sample.policy == SCHED_OTHER);
	ktest_check(sample.nice == 0);
	return 0;
}

static void in_child(int (*func)(void *arg))
{
	int status;

	if (geteuid())
		ktest_skip(
			"only root can become a user without other processes");
	status = ktest_in_child_for(func, NULL, 100);
	if (status == NO_HELPER << 8)
		ktest_skip("no CPU was idle, so no helper came");
	assert_int_equal(status, 0);
}

static void a_user_has_helpers_of_its_priority(void **state)
{
	need_helper();
	in_child(as_user);
}

/*
 * A helper that was lowered before cannot be raised; it may serve out what it has,
 * but new ones take its place.  One that was raised while it lowered itself has the
 * other policy already, and keeps the nice value.
 */
static int give_up_rights(void *arg)
{
	struct sample sample;

	if (!see_helper(&sample))
		return NO_HELPER;
	/* SCHED_IDLE, or SCHED_BATCH once the job was seen to block. */
	ktest_check(sample.policy != SCHED_OTHER && sample.nice == 19);
	become_user();
	for (int i = 0; i < NR_TRIES; i++) {
		if (!see_helper(&sample))
			return NO_HELPER;
		if (sample.policy == SCHED_OTHER && !sample.nice)
			return 0;
		nap_us(1000);
	}
	fprintf(stderr, "# the last helper has policy %d and nice %d\n",
		sample.policy, sample.nice);
	return 1;
}

static void rights_may_be_given_up(void **state)
{
	need_helper();
	in_child(give_up_rights);
}

/* ---- busy CPUs ---- */

static void burn_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

static int among_others(void *arg)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t end_ns = ktest_now_ns() + 200000000;
	pid_t pids[256];
	int nr = 0;

	become_user();
	while (nr < nr_cpus && nr < 256) {
		pids[nr] = fork();
		if (!pids[nr])
			burn_for_ever();
		ktest_check(pids[nr++] > 0);
	}
	/* They are on their CPUs by now. */
	nap_us(50000);
	while (ktest_now_ns() < end_ns) {
		struct work work = { 0 };

		work_begin(&work, 1000);
		ktest_check(!work_run(&work));
		ktest_check(!work.nr_helper_chunks);
		work_end(&work);
	}
	while (nr--)
		kill(pids[nr], SIGKILL);
	return 0;
}

static void busy_cpus_get_no_helper(void **state)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) > 16)
		ktest_skip("too many CPUs to keep all of them busy");
	in_child(among_others);
}

/* Root in a user namespace: the capability is there and does not count. */
static int in_a_namespace(void *arg)
{
	struct sample sample;

	become_user();
	if (unshare(CLONE_NEWUSER))
		return NO_HELPER;
	for (int i = 0; i < 3; i++) {
		if (!see_helper(&sample))
			return NO_HELPER;
		ktest_check(sample.policy == SCHED_OTHER);
		ktest_check(sample.nice == 0);
	}
	return 0;
}

static void rights_of_a_namespace_are_none(void **state)
{
	need_helper();
	if (KTEST_TSAN)
		ktest_skip("unshare(2) wants one thread, tsan has its own");
	in_child(in_a_namespace);
}

KTEST_MAIN(KTEST(a_user_has_helpers_of_its_priority),
	   KTEST(rights_may_be_given_up), KTEST(busy_cpus_get_no_helper),
	   KTEST(rights_of_a_namespace_are_none))
