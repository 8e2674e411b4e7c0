// SPDX-License-Identifier: GPL-2.0-only
/*
 * Priorities of helpers: the lowest, and the caller's when it waits.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/time64.h>
#include <uapi/linux/sched/types.h>

#include "test.h"

#define PATIENCE_MS 10000
/* A helper may come between two chunks of the caller only. */
#define CHUNK_MS 20
#define CHUNKS (PATIENCE_MS / CHUNK_MS)

struct lending {
	struct task_struct *caller;
	int want_prio; /* of a helper that was lent to */
	bool hold; /* helpers stay in their chunk until they are lent to */
	bool caller_works; /* is in a chunk, so that it lends nothing yet */
	atomic_t higher; /* began a chunk above the lowest priority */
	atomic_t helpers, lent;
};

/* Only a job with a helper tells anything. */
static void await_helper(struct lending *lending)
{
	int ms;

	smp_store_release(&lending->caller_works, true);
	for (ms = 0; ms < CHUNK_MS && !atomic_read(&lending->helpers); ms++)
		usleep_range(1000, 2000);
	smp_store_release(&lending->caller_works, false);
}

static int lending_chunk(void *start, void *end, void *arg)
{
	struct lending *lending = arg;
	int prio, ms;

	if (current == lending->caller) {
		await_helper(lending);
		return 0;
	}
	prio = READ_ONCE(current->prio);
	/* Who claimed a chunk and was stopped before it may have been lent to
	 * meanwhile; not if the caller works now. */
	if (smp_load_acquire(&lending->caller_works) &&
	    prio != DEFAULT_PRIO + MAX_NICE)
		atomic_inc(&lending->higher);
	atomic_inc(&lending->helpers);
	for (ms = 0; ms < PATIENCE_MS && lending->hold; ms++) {
		if (current->prio == lending->want_prio) {
			atomic_inc(&lending->lent);
			break;
		}
		usleep_range(1000, 2000);
	}
	return 0;
}

static int lend(struct lending *lending)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, lending_chunk, lending, 1);

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	ktask_ctl_set_result(&ctl, &result);
	lending->caller = current;
	/* Of a deadline: the highest that can be lent. */
	lending->want_prio = max(current->prio, 0);
	lending->hold = true;
	expect(!ktask_run(board_at(0), CHUNKS, &ctl));
	expect(atomic_read(&lending->helpers) > 0);
	expect(atomic_read(&lending->lent) == atomic_read(&lending->helpers));
	/* One that came too late for a chunk may be lent to as well. */
	expect(result.helpers_lent >= atomic_read(&lending->lent));

	/* And it is given back. */
	lending->hold = false;
	atomic_set(&lending->helpers, 0);
	expect(!ktask_run(board_at(0), CHUNKS, &ctl));
	expect(atomic_read(&lending->helpers) > 0);
	expect(atomic_read(&lending->higher) == 0);
	return 0;
}

static int a_waiting_caller_lends_its_nice_value(void)
{
	struct lending lending = {};

	return lend(&lending);
}

struct rt_caller {
	struct lending lending;
	struct completion done;
	int policy;
	int error;
};

/* 90 % of a CPU would be the machine's; a tenth is plenty. */
static const struct sched_attr deadline = {
	.size = sizeof(deadline),
	.sched_policy = SCHED_DEADLINE,
	.sched_runtime = 5 * NSEC_PER_MSEC,
	.sched_deadline = 50 * NSEC_PER_MSEC,
	.sched_period = 50 * NSEC_PER_MSEC,
};

static int rt_main(void *arg)
{
	struct rt_caller *rt = arg;

	if (rt->policy == SCHED_FIFO)
		sched_set_fifo(current);
	else
		rt->error = sched_setattr_nocheck(current, &deadline);
	if (!rt->error)
		rt->error = lend(&rt->lending);
	/* Not by a return: this code may be gone by then. */
	kthread_complete_and_exit(&rt->done, 0);
}

static int lend_from(int policy)
{
	struct rt_caller rt = { .policy = policy };
	struct task_struct *task;

	init_completion(&rt.done);
	task = kthread_run(rt_main, &rt, "ktask-rt");
	if (IS_ERR(task))
		return PTR_ERR(task);
	wait_for_completion(&rt.done);
	return rt.error;
}

static int a_real_time_caller_lends_its_priority(void)
{
	return lend_from(SCHED_FIFO);
}

static int a_deadline_caller_lends_the_highest(void)
{
	return lend_from(SCHED_DEADLINE);
}

const struct test prio_tests[] = { { "a-waiting-caller-lends-its-nice-value",
				     a_waiting_caller_lends_its_nice_value },
				   { "a-real-time-caller-lends-its-priority",
				     a_real_time_caller_lends_its_priority },
				   { "a-deadline-caller-lends-the-highest",
				     a_deadline_caller_lends_the_highest },
				   {} };
