/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Options reach the job: threads, deadline, progress, result; errno is left
 * alone.
 */
#include "ktest.h"

#include <sys/resource.h>

#include "pages.h"

#define LEN (64 * MIB)

static char *at;

static int run_with(const char *name, const struct ktask_opts *opts)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = LEN };

	return ktask_op_run(ktask_op_find(name), &args, opts);
}

static void one_thread_is_one_thread(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.max_threads = 1;
	opts.result = &result;
	assert_int_equal(run_with("populate", &opts), 0);
	assert_int_equal(result.threads, 1);
	assert_int_equal(result.helpers_lent, 0);
	assert_int_equal(result.units, LEN);
	assert_true(result.wall_ns > 0);
	assert_int_equal(pages_present(at, LEN), LEN / page_bytes());
}

static int stop_at_once(const struct ktask_progress *progress, void *arg)
{
	++*(unsigned *)arg;
	return 1;
}

static bool may_be_locked(size_t len)
{
	struct rlimit limit;

	return !geteuid() ||
	       (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur >= len);
}

static void progress_can_cancel(void **state)
{
	for (unsigned i = 0; ktask_op_at(i); i++) {
		const char *name = ktask_op_name(ktask_op_at(i));
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_opts opts = KTASK_OPTS_INIT;
		unsigned calls = 0;

		/* Those that want more than a range, or cannot be stopped. */
		if (!strcmp(name, "unmap") || !strcmp(name, "unlock") ||
		    !strcmp(name, "warm") ||
		    (!strcmp(name, "lock") && !may_be_locked(LEN)))
			continue;
		opts.max_threads = 1;
		opts.progress_func = stop_at_once;
		opts.progress_arg = &calls;
		opts.progress_ms = 1;
		opts.result = &result;
		/* A job that ends before the first look is done. */
		if (run_with(name, &opts) == 0) {
			assert_int_equal(result.units, LEN);
			continue;
		}
		assert_int_equal(result.error, -ECANCELED);
		assert_true(result.units < LEN);
		assert_true(calls > 0);
	}
}

static void a_deadline_ends_it(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.deadline_ns = 1;
	assert_int_equal(run_with("populate", &opts), -ETIMEDOUT);
	assert_true(pages_present(at, LEN) < LEN / page_bytes());
}

static int check_progress(const struct ktask_progress *progress, void *arg)
{
	struct ktask_progress *last = arg;

	assert_true(progress->units_done >= last->units_done);
	assert_int_equal(progress->units_total, LEN);
	*last = *progress;
	return 0;
}

static void progress_is_in_bytes(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_progress last = { 0 };

	opts.progress_func = check_progress;
	opts.progress_arg = &last;
	opts.progress_ms = 1;
	assert_int_equal(run_with("populate", &opts), 0);
	assert_int_equal(last.units_done, LEN);
}

static void errno_is_left_alone(void **state)
{
	errno = EXDEV;
	assert_int_equal(ktask_populate(at, LEN, 0), 0);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(ktask_populate(at, LEN, KTASK_POPULATE_TOUCH), 0);
	assert_int_equal(errno, EXDEV);
	ktask_lock(at, LEN, 0);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(ktask_fill(at, LEN, NULL, 0, 0), 0);
	assert_int_equal(errno, EXDEV);
	munmap(at + LEN / 2, page_bytes());
	assert_true(ktask_populate(at, LEN, 0) != 0);
	assert_int_equal(errno, EXDEV);
	assert_true(ktask_lock(at, LEN, 0) != 0);
	assert_int_equal(errno, EXDEV);
	assert_true(ktask_discard(at, LEN, 0) != 0);
	assert_int_equal(errno, EXDEV);
}

static int map_all(void **state)
{
	at = map_private(LEN);
	return 0;
}

static int unmap_all(void **state)
{
	munmap(at, LEN);
	return 0;
}

#define WITH_MEMORY(test) \
	cmocka_unit_test_setup_teardown(test, map_all, unmap_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_MEMORY(one_thread_is_one_thread),
		WITH_MEMORY(progress_can_cancel),
		WITH_MEMORY(a_deadline_ends_it),
		WITH_MEMORY(progress_is_in_bytes),
		WITH_MEMORY(errno_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
