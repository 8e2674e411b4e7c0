/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program's own monitor is asked instead of /proc: each thread of a job that
 * blocks is added once and removed, what it says decides, and it is refused
 * where it is incomplete or comes too late.
 */
#include "jobs.h"

#include <errno.h>
#include <ktask/monitor.h>
#include <sys/eventfd.h>
#include <time.h>

#include "user/limits/overload.h"

static struct {
	unsigned added, removed, asked, drained;
	int error; /* of add */
	int all_blocked; /* says so, whatever is true */
} seen;

static unsigned at_once, most_at_once;

static unsigned add_to(unsigned *count, int n)
{
	return __atomic_add_fetch(count, (unsigned)n, __ATOMIC_SEQ_CST);
}

static int count_added(void *arg)
{
	if (!seen.error)
		add_to(&seen.added, 1);
	return seen.error;
}

static void count_removed(void *arg)
{
	add_to(&seen.removed, 1);
}

static int count_ready(void *arg)
{
	unsigned nr = __atomic_load_n(&seen.added, __ATOMIC_SEQ_CST) -
		      __atomic_load_n(&seen.removed, __ATOMIC_SEQ_CST);

	add_to(&seen.asked, 1);
	return seen.all_blocked ? 0 : (int)nr;
}

static void drain_doorbell(void *arg)
{
	uint64_t word;

	add_to(&seen.drained, read(*(int *)arg, &word, sizeof(word)) > 0);
}

static int doorbell = -1;

static struct ktask_monitor make_monitor(void)
{
	if (doorbell < 0)
		doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	memset(&seen, 0, sizeof(seen));
	at_once = most_at_once = 0;
	return (struct ktask_monitor){ sizeof(struct ktask_monitor),
				       &doorbell,
				       count_added,
				       count_removed,
				       count_ready,
				       doorbell,
				       drain_doorbell };
}

/* Blocks, as /proc would have it. */
static int sleep_units(void *start, void *end, void *arg)
{
	struct timespec time = { 0, 1000000 };
	unsigned now = add_to(&at_once, 1);
	uint64_t one = 1;

	if (now > __atomic_load_n(&most_at_once, __ATOMIC_SEQ_CST))
		__atomic_store_n(&most_at_once, now, __ATOMIC_SEQ_CST);
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		nanosleep(&time, NULL);
	assert_int_equal(write(doorbell, &one, sizeof(one)), sizeof(one));
	add_to(&at_once, -1);
	return 0;
}

static int busy_monitor(void *start, void *end, void *arg)
{
	return ktask_set_monitor(NULL);
}

static void run_job(uintptr_t units)
{
	DEFINE_KTASK_CTL(ctl, sleep_units, NULL, 1);

	assert_int_equal(ktask_run(NULL, units, &ctl), 0);
}

/* They are of the lowest priority: not where others use all CPUs. */
static bool has_workers(void)
{
	for (int i = 0; i < 10 && most_at_once <= 2; i++)
		run_job(300);
	return most_at_once > 2;
}

static void it_decides(void **state)
{
	struct ktask_monitor it;

	make_monitor();
	if (!has_workers())
		ktest_skip("no workers are to be had here");
	it = make_monitor();
	assert_int_equal(ktask_set_monitor(&it), 0);
	/* It says that all run, though they sleep: nobody is replaced, once
	 * all have been added. */
	for (int i = 0; i < 50 && (seen.asked <= 10 || !seen.drained); i++)
		run_job(300);
	assert_true(seen.added >= 1);
	assert_true(seen.asked > 10);
	assert_true(seen.drained > 0);
	assert_int_equal(seen.added, seen.removed);

	it = make_monitor();
	assert_int_equal(ktask_set_monitor(&it), 0);
	seen.all_blocked = 1;
	if (!has_workers())
		ktest_skip("no workers are to be had any more");
	assert_int_equal(seen.added, seen.removed);

	/* Whom it refuses is looked at. */
	it = make_monitor();
	assert_int_equal(ktask_set_monitor(&it), 0);
	seen.error = -ENOMEM;
	run_job(300);
	assert_int_equal(seen.asked, 0);
	assert_int_equal(seen.removed, 0);

	assert_int_equal(ktask_set_monitor(NULL), 0);
	make_monitor();
	run_job(300);
	assert_int_equal(seen.added, 0);
}

static void nonsense_is_refused(void **state)
{
	DEFINE_KTASK_CTL(ctl, busy_monitor, NULL, 1);
	struct ktask_monitor it = make_monitor();

	it.struct_size--;
	assert_int_equal(ktask_set_monitor(&it), -EINVAL);
	it = make_monitor();
	it.add = NULL;
	assert_int_equal(ktask_set_monitor(&it), -EINVAL);
	it = make_monitor();
	it.remove = NULL;
	assert_int_equal(ktask_set_monitor(&it), -EINVAL);
	it = make_monitor();
	it.ready = NULL;
	assert_int_equal(ktask_set_monitor(&it), -EINVAL);
	it = make_monitor();
	it.drain = NULL;
	assert_int_equal(ktask_set_monitor(&it), -EINVAL);
	/* A job that begins without helpers does not count. */
	overload_threads(1, 2, ktest_now_ns() + 10000000000ull);
	assert_int_equal(ktask_run(NULL, 100, &ctl), -EBUSY);
	assert_int_equal(ktask_set_monitor(NULL), 0);
}

static int knows_no_monitor(void *unused)
{
	run_job(300);
	ktest_check(seen.added == 0 && seen.asked == 0);
	return 0;
}

static void children_have_none(void **state)
{
	struct ktask_monitor it = make_monitor();

	assert_int_equal(ktask_set_monitor(&it), 0);
	assert_int_equal(ktest_in_child(knows_no_monitor, NULL), 0);
	assert_int_equal(ktask_set_monitor(NULL), 0);
}

KTEST_MAIN(KTEST(it_decides), KTEST(nonsense_is_refused),
	   KTEST(children_have_none))
