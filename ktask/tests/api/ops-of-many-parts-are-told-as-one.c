/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An operation that takes several jobs (a mapping each, or looking at files
 * before they are read) has one deadline, one progress and one result.
 */
#include "ktest.h"

#include <time.h>

#include "files.h"
#include "pages.h"

#define PART (4 * MIB)
#define PARTS 8
#define LEN (PARTS * PART)
#define PAUSE_NS 30000000

static int warm_file(struct ktask_opts *opts, struct ktask_result *result)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = files_make("file", MIB, 1),
				   .len = KTASK_TO_END };
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .files = &file,
				      .nr_files = 1 };

	*result = (struct ktask_result)KTASK_RESULT_INIT;
	opts->result = result;
	return ktask_op_run(ktask_op_find("warm"), &args, opts);
}

static void check_stopped(const struct ktask_result *result, int error)
{
	assert_int_equal(result->error, error);
	assert_int_equal(result->fail_error, 0);
	assert_null(result->fail_pos);
	assert_int_equal(result->fail_offset, 0);
	assert_int_equal(result->units, 0);
}

static int wait_a_little(const struct ktask_progress *now, void *arg)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };

	nanosleep(&pause, NULL);
	return 0;
}

/* Telling of the first job takes as long as both may take. */
static void both_jobs_have_one_deadline(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	opts.deadline_ns = PAUSE_NS;
	opts.progress_func = wait_a_little;
	assert_int_equal(warm_file(&opts, &result), -ETIMEDOUT);
	check_stopped(&result, -ETIMEDOUT);
}

static void a_deadline_that_is_over_fails_nowhere(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	opts.deadline_ns = 1;
	assert_int_equal(warm_file(&opts, &result), -ETIMEDOUT);
	check_stopped(&result, -ETIMEDOUT);
}

static int stop_now(const struct ktask_progress *now, void *arg)
{
	return 1;
}

static void cancelling_the_first_job_cancels_the_second(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	opts.progress_func = stop_now;
	assert_int_equal(warm_file(&opts, &result), -ECANCELED);
	check_stopped(&result, -ECANCELED);
}

static int note_progress(const struct ktask_progress *now, void *arg)
{
	struct ktask_progress *last = arg;

	assert_true(now->units_done >= last->units_done);
	assert_true(now->units_done <= now->units_total);
	*last = *now;
	return 0;
}

static void progress_never_goes_back(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_progress last = { 0 };
	struct ktask_result result;

	opts.progress_func = note_progress;
	opts.progress_arg = &last;
	assert_int_equal(warm_file(&opts, &result), 0);
	assert_int_equal(last.units_total, MIB);
	assert_int_equal(last.units_done, MIB);
}

/* Each other mapping is of a file, which may end early: a job of its own. */
static char *map_parts(int fd)
{
	char *at = map_private(LEN);

	for (unsigned i = 0; i < PARTS; i += 2)
		assert_ptr_equal(
			mmap(at + i * PART, PART, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, fd, (off_t)(i * PART)),
			at + i * PART);
	return at;
}

static void results_of_parts_add_up(void **state)
{
	int fd = memory_file(LEN);
	char *at = map_parts(fd);
	struct ktask_result result = KTASK_RESULT_INIT;
	uint64_t units = 0, chunks = 0;

	assert_int_equal(run_op("populate", at, LEN, 0, &result), 0);
	for (unsigned i = 0; i < result.nr_nodes; i++) {
		units += result.nodes[i].units;
		chunks += result.nodes[i].chunks;
	}
	assert_int_equal(result.units, LEN);
	assert_int_equal(units, result.units);
	assert_int_equal(chunks, result.chunks);
	assert_true(result.chunks >= PARTS);
	munmap(at, LEN);
	close(fd);
}

#define WITH_FILES(test) \
	cmocka_unit_test_setup_teardown(test, files_begin, files_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILES(both_jobs_have_one_deadline),
		WITH_FILES(a_deadline_that_is_over_fails_nowhere),
		WITH_FILES(cancelling_the_first_job_cancels_the_second),
		WITH_FILES(progress_never_goes_back),
		KTEST(results_of_parts_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
