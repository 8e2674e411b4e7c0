/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_trim() ends also a helper that has left its job, but is not idle yet:
 * when it returns there is no helper.
 *
 * Here helpers are late in the system call that raises them between jobs.
 */
#include "support/work.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define LATE_US 200000
#define NR_UNITS 64
#define NO_HELPERS 77

typedef long syscall_func(long nr, ...);

static uint32_t be_late, is_late;

static bool flag_is_set(const uint32_t *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static bool raises_itself(long nr, pid_t tid)
{
	return nr == SYS_sched_setattr && tid == gettid() && tid != getpid();
}

/* What is read beyond the arguments is the caller's stack. */
__attribute__((visibility("default"), noinline, no_sanitize_address)) long
syscall(long nr, ...)
{
	syscall_func *call = (syscall_func *)dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	va_start(args, nr);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (flag_is_set(&be_late) && raises_itself(nr, (pid_t)a[0])) {
		set_flag(&is_late);
		usleep(LATE_US);
	}
	return call(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Jobs that follow each other leave helpers low, until one falls asleep. */
static bool meet_late_helper(void)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;

	while (!flag_is_set(&is_late) && ktest_now_ns() < end_ns) {
		struct work work = { 0 };

		work_begin(&work, NR_UNITS);
		ktest_check(!work_run(&work));
		work_end(&work);
		nap_us(100);
	}
	return flag_is_set(&is_late);
}

static int trim_late_helper(void *arg)
{
	if (work_met())
		return NO_HELPERS;
	set_flag(&be_late);
	if (!meet_late_helper())
		return NO_HELPERS;
	ktask_trim();
	ktest_check(!helpers_now(NULL, 0));
	return 0;
}

static void one_that_falls_asleep_is_awaited(void **state)
{
	int status;

	need_sure_helper();
	status = ktest_in_child_for(trim_late_helper, NULL, 100);
	if (status == NO_HELPERS << 8)
		ktest_skip("no helper was late");
	assert_int_equal(status, 0);
}

KTEST_MAIN(KTEST(one_that_falls_asleep_is_awaited))
