/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper that falls asleep in the very moment in which an item is submitted
 * takes it, once, and one whose item is cancelled in that moment takes the next.
 *
 * Every order of the two is played.  The test stands before functions of the C
 * library: the helper is stopped in the calls that it makes on its way to sleep,
 * the caller in those between its claim of the helper and the wake.  The helper's
 * clock stands still until it shall be late.  So nobody needs a CPU in time.
 */
#include "support/one_helper.h"

#include <linux/futex.h>
#include <sched.h>
#include <semaphore.h>

/* On the helper's way to sleep, in this order. */
enum helper_stop {
	CHECKS, /* asks whether it has spun for long enough: it has */
	RAISES, /* is about to raise itself */
	RAISED, /* has, and is about to say that it sleeps */
	SLEEPS, /* has said so, and is about to */
	NR_HELPER_STOPS,
	NOWHERE = NR_HELPER_STOPS
};

/* How far the caller is when the helper goes on. */
enum caller_stop {
	CLAIMED, /* the helper is claimed, the item not written */
	WAKES, /* it is, and who sleeps is about to be woken */
	SUBMITTED, /* all is done */
	CANCELLED, /* the item as well, of a helper that seemed to spin */
	CANCELLED_LATE, /* or seemed to get no CPU */
	NR_CALLER_STOPS
};

static const char *const helper_names[] = { "checks", "raises", "raised",
					    "sleeps" };
static const char *const caller_names[] = { "claimed", "wakes", "submitted",
					    "cancelled", "cancelled late" };

static _Atomic int helper_armed = NOWHERE, caller_armed = NR_CALLER_STOPS;
static sem_t helper_is_here, helper_may_run;
static _Atomic unsigned helper_calls; /* that were seen, stops left */

/* ---- the helper ---- */

static void stop_helper(enum helper_stop where)
{
	int armed = (int)where;

	if (atomic_compare_exchange_strong(&helper_armed, &armed, NOWHERE)) {
		/* In this call, which decides whether it goes to sleep. */
		helper_is_late = true;
		sem_post(&helper_is_here);
		while (sem_wait(&helper_may_run))
			;
	}
	helper_calls++;
}

static void stop_in_clock_read(void)
{
	stop_helper(CHECKS);
}

static bool is_wait(long number, const long args[6])
{
	return number == SYS_futex && args[1] == FUTEX_WAIT_PRIVATE;
}

static bool is_wake(long number, const long args[6])
{
	return number == SYS_futex && args[1] == FUTEX_WAKE_PRIVATE;
}

/* struct sched_attr: size, policy, ... */
static bool is_raise(long number, const long args[6])
{
	return number == SYS_sched_setattr &&
	       ((const uint32_t *)args[1])[1] != SCHED_IDLE;
}

/* ---- the caller ---- */

/* Until the helper has gone on: it has made a call, or runs the work. */
static void let_helper_run(void)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;
	unsigned calls = helper_calls;

	sem_post(&helper_may_run);
	/* The call that it stopped in, and the next one. */
	while (helper_calls < calls + 2 && !nr_taken && ktest_now_ns() < end_ns)
		nap_us(100);
}

static void stop_caller(enum caller_stop where)
{
	int armed = (int)where;

	if (atomic_compare_exchange_strong(&caller_armed, &armed,
					   NR_CALLER_STOPS))
		let_helper_run();
}

/* Between claiming the helper and writing the item. */
int sched_getcpu(void)
{
	unsigned cpu = 0;

	if (!is_helper())
		stop_caller(CLAIMED);
	return syscalls_pass(SYS_getcpu, (long[6]){ (long)&cpu }) ? -1
								  : (int)cpu;
}

static bool stop_in_call(long number, const long args[6], long *result)
{
	if (is_helper() && is_wait(number, args)) {
		stop_helper(SLEEPS);
	} else if (is_helper() && is_raise(number, args)) {
		stop_helper(RAISES);
		*result = syscalls_pass(number, args);
		*result = *result < 0 ? -errno : *result;
		stop_helper(RAISED);
		return true;
	} else if (!is_helper() && is_wake(number, args)) {
		stop_caller(WAKES);
	}
	return false;
}

/* The helper is not lent a priority, which would change what it is. */
static void submit_plainly(void)
{
	struct pool_item item = new_item();

	nr_taken = 0;
	submit_item(&item);
	await_done(&item);
	assert_int_equal(nr_taken, 1);
}

/* It spins and is low, as after a job that came soon after another. */
static void prepare_helper(void)
{
	helper_is_late = false;
	submit_plainly();
	submit_plainly();
}

static bool await_helper(void)
{
	struct timespec until;

	syscalls_pass(SYS_clock_gettime,
		      (long[6]){ CLOCK_REALTIME, (long)&until });
	until.tv_sec += HANG_SECONDS;
	return !sem_timedwait(&helper_is_here, &until);
}

static void cancel_item(struct pool_item *item, bool late)
{
	/* What the helper's clock says stands for when it will have spun. */
	uint64_t now_ns = late ? UINT64_MAX : 0;

	assert_true(pool_cancel(item, now_ns));
	assert_int_equal(pool_item_state(item), POOL_ITEM_DONE);
}

static void play_stops(enum helper_stop helper, enum caller_stop call)
{
	bool cancelled = call == CANCELLED || call == CANCELLED_LATE;
	struct pool_item item;

	prepare_helper();
	nr_taken = 0;
	helper_armed = helper;
	/* One that is to be stopped while it looks must not pass before. */
	if (helper != CHECKS)
		helper_is_late = true;
	assert_true(await_helper());
	item = new_item();
	caller_armed = call;
	assert_true(pool_submit(&item, -1));
	if (cancelled)
		cancel_item(&item, call == CANCELLED_LATE);
	/* It did not come where it should have stopped: nobody sleeps yet. */
	if (atomic_exchange(&caller_armed, NR_CALLER_STOPS) != NR_CALLER_STOPS)
		let_helper_run();
	if (!cancelled) {
		await_done(&item);
		assert_int_equal(nr_taken, 1);
	}
	helper_is_late = false;
	submit_plainly();
}

static void in_any_order(void **state)
{
	assert_false(sem_init(&helper_is_here, 0, 0));
	assert_false(sem_init(&helper_may_run, 0, 0));
	before_clock_read = stop_in_clock_read;
	syscalls_answer = stop_in_call;
	enter_pool();
	for (int helper = 0; helper < NR_HELPER_STOPS; helper++) {
		for (int call = 0; call < NR_CALLER_STOPS; call++) {
			printf("# helper %s, caller %s\n", helper_names[helper],
			       caller_names[call]);
			fflush(stdout);
			play_stops((enum helper_stop)helper,
				   (enum caller_stop)call);
		}
	}
	/* So that the helper, whose clock stands still, spins no longer. */
	helper_is_late = true;
	pool_leave();
}

KTEST_MAIN(KTEST(in_any_order))
