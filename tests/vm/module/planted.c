// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors made on purpose, one of each kind that a kernel built for it finds: a
 * harness that does not see these sees none (tests/vm/debug/planted-errors-*).
 * Harmless, and none of them is in ktask.ko.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "test.h"

#define RACE_MS 3000
#define PATIENCE_MS 10000
#define LEAKS 10
#define LEAK_BYTES 1000

static unsigned long raced;

static noinline void planted_race_step(void)
{
	raced++;
}

static int race_main(void *unused)
{
	while (!kthread_should_stop()) {
		planted_race_step();
		cond_resched();
	}
	return 0;
}

static int planted_race(void)
{
	unsigned long until = jiffies + msecs_to_jiffies(RACE_MS);
	struct task_struct *other = kthread_run(race_main, NULL, "race");

	expect(!IS_ERR(other));
	while (time_before(jiffies, until)) {
		planted_race_step();
		cond_resched();
	}
	kthread_stop(other);
	return 0;
}

static noinline int planted_use_after_free(void)
{
	char *memory = kmalloc(64, GFP_KERNEL), *freed = memory;

	expect(memory);
	/* Compilers know of freed memory, too. */
	OPTIMIZER_HIDE_VAR(freed);
	kfree(memory);
	(void)READ_ONCE(*freed);
	return 0;
}

static DEFINE_MUTEX(planted_mutex);

struct locking {
	struct task_struct *caller;
	bool takes; /* helpers take the mutex in their chunks */
	atomic_t helpers;
};

static int locking_chunk(void *start, void *end, void *arg)
{
	struct locking *locking = arg;
	int ms;

	if (current != locking->caller) {
		if (locking->takes) {
			mutex_lock(&planted_mutex);
			mutex_unlock(&planted_mutex);
		}
		atomic_inc(&locking->helpers);
	}
	for (ms = 0; ms < PATIENCE_MS && !atomic_read(&locking->helpers); ms++)
		usleep_range(1000, 2000);
	return 0;
}

/*
 * Helpers take a mutex, and another time the caller of the same kind of job holds
 * it while it waits: both together are a deadlock, which lockdep can know of only
 * if it is told that a caller waits for its helpers.
 */
static int planted_lock_order(void)
{
	struct locking locking = { .caller = current, .takes = true };
	DEFINE_KTASK_CTL(ctl, locking_chunk, &locking, 1);

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	expect(!ktask_run(board_at(0), 4, &ctl));
	expect(atomic_read(&locking.helpers) > 0);
	locking.takes = false;
	atomic_set(&locking.helpers, 0);
	mutex_lock(&planted_mutex);
	ktask_run(board_at(0), 4, &ctl);
	mutex_unlock(&planted_mutex);
	expect(atomic_read(&locking.helpers) > 0);
	return 0;
}

static int planted_leak(void)
{
	int i;

	for (i = 0; i < LEAKS; i++) {
		void *lost = kmalloc(LEAK_BYTES, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(lost);
		expect(lost);
	}
	return 0;
}

const struct test planted_tests[] = {
	{ "+planted-race", planted_race },
	{ "+planted-use-after-free", planted_use_after_free },
	{ "+planted-lock-order", planted_lock_order },
	{ "+planted-leak", planted_leak },
	{},
};
