/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate, and what lock makes, by the kernel module's device: only where the
 * environment asks for it, only large jobs, within the limits of a job.  In
 * guests (tests/vm/engines) the device is the real one.
 */
#include <sched.h>

#include "ktest.h"

#include "fakedevice.h"

static int small_jobs(void *arg)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	char *at = map_private(LARGE);

	setenv("KTASK_ENGINE", "kernel", 1);
	ktest_check(!run_populate(at, LARGE - page_bytes(), NULL));
	opts.max_threads = 1;
	ktest_check(!run_populate(at, LARGE, &opts));
	opts.max_threads = 2;
	opts.flags = KTASK_FIXED;
	ktest_check(!run_populate(at, LARGE, &opts));
	ktest_check(!ktask_populate(at, LARGE, KTASK_POPULATE_TOUCH));
	setenv("KTASK_ENGINE", "user", 1);
	ktest_check(!run_populate(at, LARGE, NULL));
	ktest_check(fake_device.nr_opened == 0);
	ktest_check(engine_is("user") && fake_device.nr_opened == 0);
	return 0;
}

static void only_large_jobs_that_may_ask_for_it(void **state)
{
	in_child(small_jobs);
}

static int large_jobs(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	char *at = map_private(LARGE);

	must_have_two_threads();
	setenv("KTASK_ENGINE", "kernel", 1);
	fake_device.threads = 17;
	opts.result = &result;
	opts.max_threads = 2;
	ktest_check(!run_populate(at, LARGE, &opts));
	ktest_check(pages_present(at, LARGE) == LARGE / page_bytes());
	ktest_check(fake_device.nr_requests == 1 && fake_device.bytes == LARGE);
	ktest_check(fake_device.max_threads == 2 && result.threads == 17);
	ktest_check(result.units == LARGE && result.cpu_ns > 0);
	ktest_check(fake_device.nr_opened == 1 && fake_device.nr_closed == 1);
	ktest_check(engine_is("kernel"));
	return 0;
}

static void a_request_does_a_large_job(void **state)
{
	in_child(large_jobs);
}

static int lock_twice(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at = map_private(LARGE);
	int error;

	must_have_two_threads();
	setenv("KTASK_ENGINE", "kernel", 1);
	for (unsigned i = 0; i <= 1; i++) {
		/* Refused the second time, and done all the same. */
		fake_device.nr_requests = 0;
		fake_device.fail_at = i;
		fake_device.fail_error = EINVAL;
		error = run_op("lock", at, LARGE, 0, &result);
		if (error == -ENOMEM || error == -EPERM)
			_exit(NO_LOCK);
		ktest_check(!error && fake_device.nr_requests == 1);
		ktest_check(result.units == LARGE && !result.fail_pos);
		ktest_check(pages_present(at, LARGE) == LARGE / page_bytes());
		ktest_check(status_bytes("VmLck") >= LARGE);
		/* Past the sanitizers, which make it do nothing. */
		ktest_check(!syscall(SYS_munlock, at, LARGE));
		ktest_check(!madvise(at, LARGE, MADV_DONTNEED));
	}
	/* What cannot be had. */
	mprotect(at + MIB, page_bytes(), PROT_NONE);
	ktest_check(run_op("lock", at, LARGE + MIB, 0, &result) == -ENOMEM);
	ktest_check(fake_device.nr_opened == fake_device.nr_closed);
	return 0;
}

static void locking_goes_by_it_too(void **state)
{
	in_child(lock_twice);
}

static int at_the_limit(void *arg)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	ktest_check(!sched_setaffinity(0, sizeof(cpus), &cpus));
	setenv("KTASK_ENGINE", "kernel", 1);
	populates_all(LARGE);
	ktest_check(fake_device.nr_requests == 0 && engine_is("user"));
	return 0;
}

static void who_may_have_one_thread_asks_for_none(void **state)
{
	in_child(at_the_limit);
}

static int chunk_that_populates(void *start, void *end, void *arg)
{
	return run_populate(arg, LARGE, NULL);
}

/* The job around it has given all its helpers away: it may have none. */
static int inside_a_job(void *arg)
{
	char *at = map_private(LARGE);
	DEFINE_KTASK_CTL(ctl, chunk_that_populates, at, 1);

	setenv("KTASK_ENGINE", "kernel", 1);
	ktask_ctl_set_max_threads(&ctl, 1);
	ktest_check(!ktask_run(NULL, 2, &ctl));
	ktest_check(fake_device.nr_requests == 0);
	ktest_check(pages_present(at, LARGE) == LARGE / page_bytes());
	return 0;
}

static void nested_jobs_stay_within_the_outer_ones_budget(void **state)
{
	in_child(inside_a_job);
}

static int other_settings(void *arg)
{
	static const char *const values[] = { "user", "auto", "", "KERNEL" };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(values); i++) {
		setenv("KTASK_ENGINE", values[i], 1);
		populates_all(LARGE);
		ktest_check(engine_is("user"));
	}
	unsetenv("KTASK_ENGINE");
	populates_all(LARGE);
	ktest_check(engine_is("user"));
	ktest_check(fake_device.nr_opened == 0);
	return 0;
}

static void without_the_setting_no_device_is_opened(void **state)
{
	in_child(other_settings);
}

static void others_have_one_engine(void **state)
{
	struct ktask_engine engine = KTASK_ENGINE_INIT;

	assert_int_equal(ktask_op_engine(ktask_op_find("discard"), &engine),
			 -EOPNOTSUPP);
	assert_int_equal(ktask_op_engine(NULL, &engine), -EINVAL);
	assert_int_equal(ktask_op_engine(ktask_op_find("populate"), NULL),
			 -EINVAL);
}

KTEST_MAIN(KTEST(only_large_jobs_that_may_ask_for_it),
	   KTEST(a_request_does_a_large_job), KTEST(locking_goes_by_it_too),
	   KTEST(who_may_have_one_thread_asks_for_none),
	   KTEST(nested_jobs_stay_within_the_outer_ones_budget),
	   KTEST(without_the_setting_no_device_is_opened),
	   KTEST(others_have_one_engine))
