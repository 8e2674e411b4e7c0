/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An operation that takes several jobs (a mapping each, or looking at files
 * before they are read) has one deadline, one progress and one result.
 */
#include "ktest.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "files.h"
#include "syscalls.h"

#define PART (4 * MIB)
#define PARTS 8
#define LEN (PARTS * PART)
#define PAUSE_NS 30000000

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static char *at;
static atomic_uint nr_calls;

/* Huge pages are none of this test's business. */
static bool answer(long number, const long args[6], long *result)
{
	if (number != SYS_madvise || args[2] != MADV_COLLAPSE)
		return false;
	atomic_fetch_add(&nr_calls, 1);
	*result = 0;
	return true;
}

/* As many mappings as parts: each other one can be read only. */
static int map_parts(void **state)
{
	char *all = mmap(NULL, LEN + PART, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return -1;
	at = all + -(uintptr_t)all % PART;
	for (unsigned i = 0; i < PARTS; i += 2)
		if (mprotect(at + i * PART, PART, PROT_READ))
			return -1;
	atomic_store(&nr_calls, 0);
	syscalls_answer = answer;
	return 0;
}

static int unmap_parts(void **state)
{
	syscalls_answer = NULL;
	return munmap(at, LEN);
}

static int collapse(struct ktask_opts *opts, struct ktask_result *result)
{
	struct ktask_op_args args = { .addr = at, .len = LEN };

	*result = (struct ktask_result)KTASK_RESULT_INIT;
	opts->result = result;
	return ktask_op_run(ktask_op_find("collapse"), &args, opts);
}

static int wait_a_little(const struct ktask_progress *now, void *arg)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };

	nanosleep(&pause, NULL);
	return 0;
}

static void no_place_has_failed(const struct ktask_result *result, int error)
{
	assert_int_equal(result->error, error);
	assert_int_equal(result->fail_error, 0);
	assert_null(result->fail_pos);
	assert_int_equal(result->fail_offset, 0);
}

/* What is told at the end of each part takes half as long as all may take. */
static void one_deadline_for_all_parts(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	opts.deadline_ns = 2 * PAUSE_NS;
	opts.progress_func = wait_a_little;
	assert_int_equal(collapse(&opts, &result), -ETIMEDOUT);
	assert_true(atomic_load(&nr_calls) < PARTS);
	no_place_has_failed(&result, -ETIMEDOUT);
}

static void a_deadline_that_is_over_fails_nowhere(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	opts.deadline_ns = 1;
	assert_int_equal(collapse(&opts, &result), -ETIMEDOUT);
	assert_int_equal(atomic_load(&nr_calls), 0);
	no_place_has_failed(&result, -ETIMEDOUT);
}

static int enough(const struct ktask_progress *now, void *arg)
{
	return 1;
}

static void who_wants_no_more_gets_no_other_part(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	opts.progress_func = enough;
	assert_int_equal(collapse(&opts, &result), -ECANCELED);
	assert_int_equal(atomic_load(&nr_calls), 1);
	no_place_has_failed(&result, -ECANCELED);
}

static uint64_t told, elapsed_ns;

static int note(const struct ktask_progress *now, void *arg)
{
	assert_int_equal(now->units_total, LEN);
	assert_true(now->units_done >= told);
	assert_true(now->units_done <= LEN);
	assert_true(now->elapsed_ns >= elapsed_ns);
	told = now->units_done;
	elapsed_ns = now->elapsed_ns;
	return 0;
}

static void progress_is_that_of_the_whole(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	told = elapsed_ns = 0;
	opts.progress_func = note;
	assert_int_equal(collapse(&opts, &result), 0);
	assert_int_equal(told, LEN);
}

static void nodes_add_up(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;
	uint64_t units = 0, chunks = 0;

	assert_int_equal(collapse(&opts, &result), 0);
	for (unsigned i = 0; i < result.nr_nodes; i++) {
		units += result.nodes[i].units;
		chunks += result.nodes[i].chunks;
	}
	assert_int_equal(result.units, LEN);
	assert_int_equal(units, result.units);
	assert_int_equal(chunks, result.chunks);
}

/* Looking at a file, and reading it. */
static void files_have_one_deadline(void **state)
{
	struct ktask_file file = { .path = files_make("file", MIB, 1),
				   .len = KTASK_TO_END };
	struct ktask_op_args args = { .files = &file, .nr_files = 1 };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.deadline_ns = PAUSE_NS;
	opts.progress_func = wait_a_little;
	opts.result = &result;
	assert_int_equal(ktask_op_run(ktask_op_find("warm"), &args, &opts),
			 -ETIMEDOUT);
	no_place_has_failed(&result, -ETIMEDOUT);
	assert_int_equal(result.units, 0);
}

#define WITH_PARTS(test) \
	cmocka_unit_test_setup_teardown(test, map_parts, unmap_parts)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PARTS(one_deadline_for_all_parts),
		WITH_PARTS(a_deadline_that_is_over_fails_nowhere),
		WITH_PARTS(who_wants_no_more_gets_no_other_part),
		WITH_PARTS(progress_is_that_of_the_whole),
		WITH_PARTS(nodes_add_up),
		cmocka_unit_test_setup_teardown(files_have_one_deadline,
						files_begin, files_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
