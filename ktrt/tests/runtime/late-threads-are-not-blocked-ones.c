/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Without UMT a core gets another thread if all its workers are blocked.  One
 * that was made and that the kernel has not run yet is not, however long that
 * takes, nor does one that is gone count.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "support/bare_runtime.h"

static void late_ones(void **state)
{
	static struct core cores[2];
	struct worker *w;
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 2);
	w = worker_new(0);
	assert_non_null(w);
	assert_true(worker_all_blocked(&cores[0]));
	w->core = &cores[0];
	assert_false(worker_all_blocked(&cores[0]));
	assert_true(worker_all_blocked(&cores[1]));
	/* This thread runs. */
	w->tid = (pid_t)syscall(SYS_gettid);
	assert_false(worker_all_blocked(&cores[0]));
	worker_retire(w);
	assert_true(worker_all_blocked(&cores[0]));
	bare_runtime_end();
}

KTEST_MAIN(KTEST(late_ones))
