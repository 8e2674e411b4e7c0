/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever the kernel module's device refuses, and whenever: errors, results and
 * pages are those of a machine without it; progress and deadlines hold.
 */
#include "ktest.h"

#include "fakedevice.h"

/* ---- refusals ---- */

static int open_refused(void *arg)
{
	static const int errors[] = { ENOENT, EACCES, EPERM,  ENXIO, ENODEV,
				      EINTR,  EMFILE, ENOMEM, ELOOP };

	setenv("KTASK_ENGINE", "kernel", 1);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(errors); i++) {
		fake_device.open_error = errors[i];
		populates_all(LARGE);
		ktest_check(engine_is("user"));
	}
	ktest_check(fake_device.nr_requests == 0);
	return 0;
}

static void a_device_that_cannot_be_opened_changes_nothing(void **state)
{
	in_child(open_refused);
}

static const int refusals[] = { ENOTTY, EINVAL, EPERM,	EFAULT, E2BIG,
				ENOMEM, EINTR,	EAGAIN, ENOSYS };

static int probe_refused(void *arg)
{
	setenv("KTASK_ENGINE", "kernel", 1);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(refusals); i++) {
		fake_device.probe_error = refusals[i];
		populates_all(LARGE);
		ktest_check(engine_is("user"));
	}
	ktest_check(fake_device.nr_requests == 0);
	return 0;
}

static void another_file_at_its_path_changes_nothing(void **state)
{
	in_child(probe_refused);
}

static int goes_on(const struct ktask_progress *progress, void *arg)
{
	return 0;
}

/* Any request of a job may fail, also of one in several requests. */
static int requests_refused(void *arg)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	must_have_two_threads();
	setenv("KTASK_ENGINE", "kernel", 1);
	opts.progress_func = goes_on;
	for (unsigned at = 1; at <= 3; at++)
		for (unsigned i = 0; i < KTEST_ARRAY_SIZE(refusals); i++) {
			char *memory = map_private(LARGE);

			fake_device.fail_at = at;
			fake_device.fail_error = refusals[i];
			fake_device.nr_requests = 0;
			populates_all(LARGE + MIB);
			fake_device.nr_requests = 0;
			ktest_check(!run_populate(memory, LARGE, &opts));
			ktest_check(fake_device.nr_requests <= at);
			ktest_check(pages_present(memory, LARGE) ==
				    LARGE / page_bytes());
			munmap(memory, LARGE);
		}
	return 0;
}

static void a_refused_request_is_done_all_the_same(void **state)
{
	in_child(requests_refused);
}

/* ---- errors of the memory itself ---- */

static void compare_errors(char *at)
{
	struct ktask_result by_user = KTASK_RESULT_INIT;
	struct ktask_result by_kernel = KTASK_RESULT_INIT;
	unsigned before = fake_device.nr_requests;
	int error;

	setenv("KTASK_ENGINE", "user", 1);
	error = run_op("populate", at, LARGE, 0, &by_user);
	ktest_check(error);
	madvise(at, LARGE, MADV_DONTNEED);
	setenv("KTASK_ENGINE", "kernel", 1);
	ktest_check(run_op("populate", at, LARGE, 0, &by_kernel) == error);
	ktest_check(fake_device.nr_requests > before);
	ktest_check(by_kernel.error == by_user.error);
	ktest_check(by_kernel.fail_error == by_user.fail_error);
	ktest_check(by_kernel.fail_pos == by_user.fail_pos);
	ktest_check(by_kernel.fail_offset == by_user.fail_offset);
	ktest_check(fake_device.nr_opened == fake_device.nr_closed);
}

static int bad_memory(void *arg)
{
	static const size_t page_indices[] = { 0, 511, 512, 9999, 16383 };

	must_have_two_threads();
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(page_indices); i++) {
		size_t position = page_indices[i] * page_bytes();
		int fd = memory_file(LARGE);
		char *at = map_private(LARGE);

		/* Told apart by its mappings: what is before it is done. */
		mprotect(at + position, page_bytes(), PROT_NONE);
		setenv("KTASK_ENGINE", "kernel", 1);
		ktest_check(run_populate(at, LARGE, NULL) == -EFAULT);
		munmap(at, LARGE);
		at = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
		ktest_check(!ftruncate(fd, (off_t)position));
		compare_errors(at);
		munmap(at, LARGE);
		close(fd);
	}
	return 0;
}

static void errors_are_the_same_in_both(void **state)
{
	in_child(bad_memory);
}

/* ---- jobs that end early ---- */

static int stops_at_once(const struct ktask_progress *progress, void *arg)
{
	++*(unsigned *)arg;
	return 1;
}

static int ended_jobs(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	char *at = map_private(4 * LARGE);
	unsigned told = 0;

	must_have_two_threads();
	opts.result = &result;
	setenv("KTASK_ENGINE", "kernel", 1);
	fake_device.us_per_mib = 1000;
	opts.deadline_ns = 20000000;
	/* The deadline may be over before there was a request. */
	for (int i = 0; i < 100 && !fake_device.nr_requests; i++)
		ktest_check(run_populate(at, 4 * LARGE, &opts) == -ETIMEDOUT);
	ktest_check(fake_device.nr_requests > 0 &&
		    fake_device.bytes < 4 * LARGE);
	ktest_check(result.error == -ETIMEDOUT &&
		    result.units == fake_device.bytes);
	ktest_check(pages_present(at, 4 * LARGE) * page_bytes() >=
		    result.units);
	opts.deadline_ns = 1;
	ktest_check(run_populate(at, LARGE, &opts) == -ETIMEDOUT &&
		    result.units == 0);

	opts.deadline_ns = 0;
	opts.progress_func = stops_at_once;
	opts.progress_arg = &told;
	ktest_check(run_populate(at, 4 * LARGE, &opts) == -ECANCELED &&
		    told > 0);
	ktest_check(result.units < 4 * LARGE);
	ktest_check(fake_device.nr_opened == fake_device.nr_closed);
	return 0;
}

static void deadlines_and_progress_end_a_job(void **state)
{
	in_child(ended_jobs);
}

KTEST_MAIN(KTEST(a_device_that_cannot_be_opened_changes_nothing),
	   KTEST(another_file_at_its_path_changes_nothing),
	   KTEST(a_refused_request_is_done_all_the_same),
	   KTEST(errors_are_the_same_in_both),
	   KTEST(deadlines_and_progress_end_a_job))
