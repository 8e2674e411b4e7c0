/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A started job has a helper, even if the only one is still leaving the job
 * before: it is given the work while it sets its own priority.  Nobody submits
 * again for a started job until somebody waits.
 *
 * Stands before syscall(2): the helper sets its own priority as it leaves, and
 * is held there.
 */
#include "support/work.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define NR_UNITS 50

static pid_t caller; /* 0 until a helper shall be held */
static bool has_lent;
static uint32_t waits, leaving, may_leave;

/* The caller lends its priority, then sleeps until the helper has left.  From
 * then on the helper sets its priority once: to give the loan back. */
static void note_call(long number, long operation)
{
	if (gettid() == __atomic_load_n(&caller, __ATOMIC_RELAXED)) {
		has_lent |= number == SYS_sched_setattr;
		if (has_lent && number == SYS_futex &&
		    operation == FUTEX_WAIT_PRIVATE)
			set_flag(&waits);
	} else if (number == SYS_sched_setattr &&
		   __atomic_load_n(&waits, __ATOMIC_ACQUIRE) &&
		   !__atomic_exchange_n(&leaving, 1, __ATOMIC_ACQ_REL)) {
		wait_for_flag(&may_leave);
	}
}

/* What is read beyond the arguments is the caller's stack. */
__attribute__((noinline, no_sanitize_address)) long syscall(long number, ...)
{
	long (*real)(long, ...) =
		(long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long args[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	note_call(number, args[1]);
	return real(number, args[0], args[1], args[2], args[3], args[4],
		    args[5]);
}

/* The caller ends its chunk once there is a helper, which ends its own when the
 * caller sleeps. */
static int stay_until_waited_for(struct work *work, size_t from, size_t to)
{
	bool helper = work_is_helper(work);

	set_flag(&work->here[helper]);
	return wait_for_flag(helper ? &waits : &work->here[1]) ? 0 : -ETIME;
}

/* The first job of the process, whose helper was just made. */
static void hold_helper_as_it_leaves(void)
{
	struct work work = { .also = stay_until_waited_for };

	work_begin(&work, 2);
	__atomic_store_n(&caller, gettid(), __ATOMIC_RELAXED);
	assert_int_equal(work_run(&work), 0);
	assert_true(wait_for_flag(&leaving));
	assert_int_equal(work.nr_helper_chunks, 1);
	work_end(&work);
}

static void finish_by_helpers(struct work *work)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;
	struct ktask_ctl ctl = work_ctl(work, 1);
	struct ktask_progress progress = KTASK_PROGRESS_INIT;
	struct ktask_job *job;

	assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl), 0);
	ktask_poll(job, &progress);
	assert_int_equal(progress.threads, 2);
	set_flag(&may_leave);
	while (ktask_poll(job, NULL) == -EINPROGRESS) {
		assert_true(ktest_now_ns() < end_ns);
		nap_us(100);
	}
	assert_int_equal(ktask_wait(job), 0);
}

static void one_that_leaves_takes_the_work(void **state)
{
	struct work work = { 0 };

	/* A cap of one helper, whatever the machine. */
	assert_int_equal(setenv("KTASK_CAP_PERCENT", "1", 1), 0);
	need_sure_helper();
	hold_helper_as_it_leaves();
	work_begin(&work, NR_UNITS);
	finish_by_helpers(&work);
	assert_int_equal(work.nr_chunks, work.nr_helper_chunks);
	assert_true(work_done_once(&work));
	work_end(&work);
}

KTEST_MAIN(KTEST(one_that_leaves_takes_the_work))
