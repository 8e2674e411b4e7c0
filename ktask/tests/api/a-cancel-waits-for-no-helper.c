/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who cancels an item of a helper that is lowering itself checks that helper once
 * and goes on.  The helper raises itself, also where it was raised in the middle
 * of being lowered.
 */
#include "support/work.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>

#include "user/pool/user_pool.h"
#include "syscalls.h"

/* ---- a helper that is held while it lowers itself ---- */

enum hold { HOLD_NONE, HOLD_BEFORE, HOLD_BETWEEN };

static uint32_t hold, is_held, runs_on, nr_policy_reads;

static void hold_here(enum hold where)
{
	if (__atomic_load_n(&hold, __ATOMIC_ACQUIRE) != where)
		return;
	set_flag(&is_held);
	while (__atomic_load_n(&hold, __ATOMIC_ACQUIRE) == where)
		nap_us(100);
	set_flag(&runs_on);
}

static bool answer_syscall(long number, const long args[6], long *result)
{
	struct { /* struct sched_attr */
		uint32_t size, policy;
	} attr;

	if (number != SYS_sched_setattr || args[0])
		return false;
	memcpy(&attr, (const void *)args[1], sizeof(attr));
	if (attr.policy == SCHED_IDLE)
		hold_here(HOLD_BEFORE);
	return false;
}

/* These stand before those of the C library. */
int setpriority(__priority_which_t which, id_t who, int nice)
{
	if (nice == 19)
		hold_here(HOLD_BETWEEN);
	return (int)syscall(SYS_setpriority, which, who, nice);
}

int sched_getscheduler(pid_t tid)
{
	__atomic_fetch_add(&nr_policy_reads, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_sched_getscheduler, tid);
}

/* ---- the test ---- */

static bool work_never(struct pool_item *pool_item)
{
	return true;
}

static bool is_parked(pid_t tid)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;

	while (!thread_sleeps(tid) && ktest_now_ns() < end_ns)
		nap_us(1000);
	return thread_sleeps(tid);
}

static void park_helpers(void)
{
	pid_t tids[64];
	unsigned nr;

	if (work_met())
		_exit(77);
	nr = helpers_now(tids, 64);
	ktest_check(nr);
	for (unsigned i = 0; i < nr; i++)
		ktest_check(is_parked(tids[i]));
}

/* Of a helper that takes the item and is held @where. */
static pid_t cancel_while_held(enum hold where)
{
	struct pool_item pool_item = { .work = work_never,
				       .level = KT_PLACEMENT_ANY };
	struct kt_cpus cpus;
	pid_t tid;

	park_helpers();
	syscalls_answer = answer_syscall;
	ktest_check(cpus_get_affinity(&cpus));
	pool_item.cpus = &cpus;
	__atomic_store_n(&hold, where, __ATOMIC_RELEASE);
	ktest_check(pool_submit(&pool_item, -1));
	tid = (pid_t)pool_item_tid(&pool_item);
	ktest_check(wait_for_flag(&is_held));
	__atomic_store_n(&nr_policy_reads, 0, __ATOMIC_RELAXED);
	ktest_check(pool_cancel(&pool_item, ktest_now_ns()));
	ktest_check(__atomic_load_n(&nr_policy_reads, __ATOMIC_RELAXED) == 1);
	ktest_check(pool_item_state(&pool_item) == POOL_ITEM_DONE);
	return tid;
}

static void check_raised(pid_t tid)
{
	__atomic_store_n(&hold, HOLD_NONE, __ATOMIC_RELEASE);
	ktest_check(wait_for_flag(&runs_on));
	ktest_check(is_parked(tid));
	ktest_check(sched_getscheduler(tid) == SCHED_OTHER);
	ktest_check(getpriority(PRIO_PROCESS, (id_t)tid) ==
		    getpriority(PRIO_PROCESS, 0));
}

static int cancel_before(void *arg)
{
	check_raised(cancel_while_held(HOLD_BEFORE));
	return 0;
}

static int cancel_between(void *arg)
{
	pid_t tid = cancel_while_held(HOLD_BETWEEN);

	/* It might get no CPU to do that by itself. */
	ktest_check(sched_getscheduler(tid) == SCHED_OTHER);
	check_raised(tid);
	return 0;
}

static void check_child(int (*func)(void *arg))
{
	int status;

	need_sure_helper();
	status = ktest_in_child(func, NULL);
	if (status == 77 << 8)
		ktest_skip("no helper came");
	assert_int_equal(status, 0);
}

static void one_that_is_not_low_yet_raises_itself(void **state)
{
	check_child(cancel_before);
}

static void one_that_is_half_low_is_raised_to_the_end(void **state)
{
	check_child(cancel_between);
}

KTEST_MAIN(KTEST(one_that_is_not_low_yet_raises_itself),
	   KTEST(one_that_is_half_low_is_raised_to_the_end))
