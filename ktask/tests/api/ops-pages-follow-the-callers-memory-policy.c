/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * set_mempolicy(2) holds for one thread: helpers that make pages take over
 * the policy of the thread whose job it is, each time anew, and give it back.
 */
#include "ktest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "pages.h"
#include "syscalls.h"

#define LEN (16 * MIB)
#define NODES_MAX 1024

enum { DEFAULT, PREFERRED, BIND, INTERLEAVE };

static pthread_t caller;
static atomic_uint nr_helped, nr_wrong; /* jobs of no operation */
static atomic_uint nr_followed; /* helpers that took a policy over */
static atomic_uint own_modes; /* bits: those that helpers have by themselves */
static _Thread_local int mode_own, mode_set; /* of this thread */
static int wanted;

/*
 * Whatever a helper sets is the caller's, or by turns what it had.  A helper that
 * is made later than others has what its maker had, and asks for that first.
 */
static bool watch_policy(long number, const long args[6], long *result)
{
	int mode = (int)args[0];

	if (number != SYS_set_mempolicy && number != SYS_get_mempolicy)
		return false;
	*result = syscalls_pass(number, args) ? -errno : 0;
	if (pthread_equal(pthread_self(), caller))
		return true;
	if (number == SYS_get_mempolicy) {
		mode_own = mode_set = *(const int *)args[0];
		atomic_fetch_or(&own_modes, 1u << mode_own);
		return true;
	}
	if (mode != (mode_set == mode_own ? wanted : mode_own))
		atomic_fetch_add(&nr_wrong, 1);
	atomic_fetch_add(&nr_followed, mode == wanted);
	mode_set = mode;
	return true;
}

static int mode_here(void)
{
	unsigned long nodes[NODES_MAX / 64];
	int mode = -1;

	syscall(SYS_get_mempolicy, &mode, nodes, NODES_MAX + 1, NULL, 0);
	return mode;
}

static void set_mode(int mode)
{
	unsigned long nodes[NODES_MAX / 64] = { mode != DEFAULT };

	if (syscall(SYS_set_mempolicy, mode, nodes, NODES_MAX + 1))
		ktest_skip("memory policies cannot be set: %s",
			   strerror(errno));
	wanted = mode;
}

/* Long enough that a helper gets its share before all are taken. */
static int check_policy(void *start, void *end, void *arg)
{
	uint64_t until = ktest_now_ns() + 200000;

	if (!pthread_equal(pthread_self(), caller)) {
		atomic_fetch_add(&nr_helped, 1);
		if (mode_here() != mode_own)
			atomic_fetch_add(&nr_wrong, 1);
	}
	while (ktest_now_ns() < until)
		;
	return 0;
}

/* An operation that needs helpers, then a look at what they have kept. */
static bool helpers_follow(const char *name)
{
	char *at = map_private(LEN);
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = LEN };
	DEFINE_KTASK_CTL(ctl, check_policy, NULL, 1);
	unsigned before = atomic_load(&nr_helped);
	unsigned followed = atomic_load(&nr_followed);

	opts.result = &result;
	assert_int_equal(ktask_op_run(ktask_op_find(name), &args, &opts), 0);
	if (result.threads > 1 && wanted != DEFAULT &&
	    !(atomic_load(&own_modes) & 1u << wanted))
		assert_true(atomic_load(&nr_followed) > followed);
	if (result.threads > 1)
		assert_int_equal(ktask_run(NULL, 500, &ctl), 0);
	munmap(at, LEN);
	return atomic_load(&nr_helped) > before;
}

static void try_until_helped(const char *name)
{
	for (int i = 0; i < 50; i++)
		if (helpers_follow(name))
			return;
	ktest_skip("no helper in 50 jobs");
}

static void every_operation_that_makes_pages(void **state)
{
	char *locked = map_private(LEN);

	caller = pthread_self();
	/* Helpers are made now, with this, and stay. */
	setenv("KTASK_IDLE_MS", "3600000", 1);
	set_mode(DEFAULT);
	try_until_helped("populate");
	syscalls_answer = watch_policy;
	set_mode(BIND);
	try_until_helped("populate");
	set_mode(INTERLEAVE);
	try_until_helped("fill");
	set_mode(DEFAULT);
	try_until_helped("fill");
	set_mode(PREFERRED);
	if (ktask_lock(locked, LEN, 0) == 0)
		try_until_helped("lock");
	set_mode(DEFAULT);
	try_until_helped("populate");
	syscalls_answer = NULL;
	assert_int_equal(atomic_load(&nr_wrong), 0);
	munmap(locked, LEN);
}

KTEST_MAIN(KTEST(every_operation_that_makes_pages))
