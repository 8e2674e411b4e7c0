/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper fails, and has left, while the caller is about to submit items:
 * its failure is not forgotten when its item is looked at.
 *
 * The instant is reached by standing before stat(), which the caller calls
 * between deciding and dealing when it looks for what other users demand.
 */
#include "support/work.h"

#include <dlfcn.h>
#include <sys/stat.h>

/* Two seconds of work: a look that took long is not repeated soon. */
#define NR_UNITS 6000

static pid_t caller;
static uint32_t helper_waits, fail_now, caller_polled;

int stat(const char *path, struct stat *st)
{
	int (*real)(const char *, struct stat *) =
		(int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");

	if (gettid() == caller &&
	    __atomic_load_n(&helper_waits, __ATOMIC_ACQUIRE) &&
	    !__atomic_load_n(&fail_now, __ATOMIC_ACQUIRE)) {
		set_flag(&fail_now);
		nap_us(50000);
		set_flag(&caller_polled);
	}
	return real(path, st);
}

static int fail_in_helper(struct work *work, size_t from, size_t to)
{
	uint64_t end_ns = ktest_now_ns() + 2000000000;

	if (!work_is_helper(work)) {
		burn_us(300 * (unsigned)(to - from));
		return 0;
	}
	set_flag(&helper_waits);
	while (!__atomic_load_n(&fail_now, __ATOMIC_ACQUIRE) &&
	       ktest_now_ns() < end_ns)
		nap_us(20);
	ktask_fail_at(WORK_BASE + from);
	return -EIO;
}

static void failure_is_kept(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = fail_in_helper, .meet = true };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	need_sure_helper();
	caller = gettid();
	work_begin(&work, NR_UNITS);
	/* The caller waits in its first chunk: with a ramp no helper would come. */
	ktask_ctl_set_max_threads(&ctl, 2);
	ktask_ctl_set_chunk_us(&ctl, 300);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run(WORK_BASE, NR_UNITS, &ctl), -EIO);
	assert_true(work_undone_exactly(&work, NULL));
	assert_int_equal(result.fail_error, -EIO);
	assert_non_null(result.fail_pos);
	work_end(&work);
	caller = 0;
	if (!caller_polled)
		ktest_skip("the caller never looked at other users");
}

KTEST_MAIN(KTEST(failure_is_kept))
