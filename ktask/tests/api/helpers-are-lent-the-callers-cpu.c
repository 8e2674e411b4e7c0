/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * While its caller works a helper is kept off the caller's CPU; once the caller
 * can only wait for it, it may run there as well, with and without the right
 * to lend a priority; and the next job keeps it off again.
 */
#include "ktest.h"
#include "tree.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <linux/capability.h>

#include <ktask/ktask.h>

#include "util/file.h"

#define LIMIT_NS 60000000000ull
#define HELPER_NS 1000000000ull

struct seen {
	pid_t caller;
	int all; /* CPUs of the process */
	int at_first, at_last; /* CPUs of the helper, in its chunk */
	int in_chunk;
	int missed; /* the caller went on before that */
};

static int own_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? -1 : CPU_COUNT(&set);
}

/* Two chunks: the caller's waits for the helper to be in the other one, which
 * ends when the helper has got another CPU. */
static int await_move(void *start, void *end, void *arg)
{
	struct seen *seen = arg;
	uint64_t until = ktest_now_ns();

	if (syscall(SYS_gettid) == seen->caller) {
		until += HELPER_NS;
		while (!__atomic_load_n(&seen->in_chunk, __ATOMIC_ACQUIRE) &&
		       ktest_now_ns() < until)
			usleep(100);
		seen->missed =
			!__atomic_load_n(&seen->in_chunk, __ATOMIC_ACQUIRE);
		return 0;
	}
	until += LIMIT_NS;
	seen->at_first = own_cpus();
	__atomic_store_n(&seen->in_chunk, 1, __ATOMIC_RELEASE);
	while (own_cpus() != seen->all && ktest_now_ns() < until)
		usleep(100);
	seen->at_last = own_cpus();
	return 0;
}

static bool try_job(struct seen *seen)
{
	DEFINE_KTASK_CTL(ctl, await_move, seen, 1);

	*seen = (struct seen){ .caller = (pid_t)syscall(SYS_gettid),
			       .all = own_cpus() };
	ktask_ctl_set_max_threads(&ctl, 2);
	ktest_check(!ktask_run(NULL, 2, &ctl));
	return seen->in_chunk && !seen->missed;
}

static int three_jobs(void *arg)
{
	struct seen seen;

	for (int job = 0; job < 3; job++) {
		int tries = 0;

		while (!try_job(&seen))
			if (++tries == 10)
				return 77;
		ktest_check(seen.at_first == seen.all - 1);
		ktest_check(seen.at_last == seen.all);
	}
	return 0;
}

/* Helpers come only where CPUs idle: by what the machine says, they do. */
static int without_the_right(void *arg)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];
	struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_NICE, &none) || syscall(SYS_capget, &head, data))
		return 77;
	data[0].effective &= ~(1u << CAP_SYS_NICE);
	data[0].permitted &= ~(1u << CAP_SYS_NICE);
	if (syscall(SYS_capset, &head, data))
		return 77;
	file_root = arg;
	return three_jobs(arg);
}

static void check_child(int (*child)(void *arg), void *arg)
{
	int status;

	if (own_cpus() < 2)
		ktest_skip("one CPU");
	status = ktest_in_child_for(child, arg, 100);
	if (status == 77 << 8)
		ktest_skip("no helper came");
	assert_int_equal(status, 0);
}

static void with_the_right_to_lend(void **state)
{
	check_child(three_jobs, NULL);
}

static void without_it(void **state)
{
	struct tree tree;

	tree_begin(&tree);
	tree_put(&tree, "/proc/loadavg", "0.00 0.00 0.00 1/100 1234\n");
	tree_put_cpus(&tree);
	check_child(without_the_right, tree.root);
	tree_end(&tree);
}

KTEST_MAIN(KTEST(with_the_right_to_lend), KTEST(without_it))
