// SPDX-License-Identifier: GPL-2.0-only
/*
 * Priorities of helpers: the lowest, and the caller's when it waits.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
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
/* Of these the caller waits in so many for more than one helper. */
#define CHUNKS_FOR_MORE 50
/* Who else was lent to sees it meanwhile. */
#define RAISED_MS 20

struct lending {
	struct task_struct *caller;
	int want_prio; /* of a helper that was lent to */
	int want_helpers; /* that the caller's chunks wait for, some time */
	int waited; /* chunks of the caller's */
	int at_once; /* helpers that were in chunks when it lent */
	bool hold; /* helpers stay in their chunk until they are lent to */
	bool caller_works; /* is in a chunk, so that it lends nothing yet */
	atomic_t higher; /* began a chunk above the lowest priority */
	atomic_t helpers, lent;
	atomic_t raised, most_raised; /* helpers that were lent to, at once */
};

static bool enough_helpers(const struct lending *lending)
{
	return atomic_read(&lending->helpers) >=
	       (lending->waited > CHUNKS_FOR_MORE ? 1 : lending->want_helpers);
}

/* Only a job with a helper tells anything. */
static void await_helper(struct lending *lending)
{
	int ms;

	lending->waited++;
	smp_store_release(&lending->caller_works, true);
	for (ms = 0; ms < CHUNK_MS && !enough_helpers(lending); ms++)
		usleep_range(1000, 2000);
	smp_store_release(&lending->caller_works, false);
}

/* Until it leaves its chunk the caller waits for this one, and lends to no other. */
static void stay_raised(struct lending *lending)
{
	int raised = atomic_inc_return(&lending->raised);
	int most = atomic_read(&lending->most_raised);

	while (raised > most &&
	       !atomic_try_cmpxchg(&lending->most_raised, &most, raised))
		;
	msleep(RAISED_MS);
	atomic_dec(&lending->raised);
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
			stay_raised(lending);
			break;
		}
		usleep_range(1000, 2000);
	}
	return 0;
}

static int lend_priority(struct lending *lending)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, lending_chunk, lending, 1);

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	ktask_ctl_set_result(&ctl, &result);
	lending->caller = current;
	/* Of a deadline: the highest that can be lent. */
	lending->want_prio = max(current->prio, 0);
	lending->want_helpers = max(lending->want_helpers, 1);
	lending->hold = true;
	expect(!ktask_run(board_at(0), CHUNKS, &ctl));
	expect(atomic_read(&lending->helpers) > 0);
	expect(atomic_read(&lending->lent) == atomic_read(&lending->helpers));
	/* One that came too late for a chunk may be lent to as well. */
	expect(result.helpers_lent >= atomic_read(&lending->lent));
	expect(atomic_read(&lending->most_raised) == 1);
	lending->at_once = atomic_read(&lending->helpers);

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

	return lend_priority(&lending);
}

static int a_waiting_caller_lends_to_one_at_a_time(void)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	struct lending lending;
	int error;

	if (num_online_cpus() < 4)
		return test_skip("fewer than four CPUs");
	do {
		lending = (struct lending){ .want_helpers = 2 };
		error = lend_priority(&lending);
	} while (!error && lending.at_once < 2 && time_before(jiffies, until));
	if (!error && lending.at_once < 2)
		return test_skip("no two helpers came at once");
	return error;
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
		rt->error = lend_priority(&rt->lending);
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
				   { "a-waiting-caller-lends-to-one-at-a-time",
				     a_waiting_caller_lends_to_one_at_a_time },
				   { "a-real-time-caller-lends-its-priority",
				     a_real_time_caller_lends_its_priority },
				   { "a-deadline-caller-lends-the-highest",
				     a_deadline_caller_lends_the_highest },
				   {} };
