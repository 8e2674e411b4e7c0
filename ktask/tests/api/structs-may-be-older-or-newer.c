/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that were built with an older or a newer header are served: of each
 * structure with a size as much is read, or filled, as it has, nothing behind
 * it is touched, and what is not known here is refused unless it is zero.
 */
#include <ktask/ktask.h>
#include <ktask/monitor.h>
#include <ktask/ops.h>

#include "tree.h"
#include "version.h"

#define LEAST(type, field) \
	(offsetof(struct type, field) + sizeof(((struct type *)0)->field))

VERSION_NO_PADDING(ktask_ctl, reserved);
VERSION_NO_PADDING(ktask_opts, reserved);
VERSION_NO_PADDING(ktask_op_args, src_len);
VERSION_NO_PADDING(ktask_file, size);
VERSION_NO_PADDING(ktask_autotune, single_rate);
VERSION_NO_PADDING(ktask_monitor, drain);

static size_t units;

static int count_units(void *start, void *end, void *arg)
{
	__atomic_add_fetch(&units, (size_t)((char *)end - (char *)start),
			   __ATOMIC_RELAXED);
	return 0;
}

/* ---- control blocks ---- */

#define UNITS 100

/* Return: @error, after a look whether all was done or nothing. */
static int check_units(int error)
{
	assert_int_equal(units, error ? 0 : UNITS);
	units = 0;
	return error;
}

static int run(void *ctl)
{
	return check_units(ktask_run(NULL, UNITS, ctl));
}

static int run_numa(void *ctl)
{
	struct ktask_node node = { NULL, UNITS, NUMA_NO_NODE };

	return check_units(ktask_run_numa(&node, 1, ctl));
}

static int start_and_wait(void *ctl)
{
	struct ktask_job *job;
	int error = ktask_start(&job, NULL, UNITS, ctl);

	if (error)
		assert_null(job);
	return check_units(error ? error : ktask_wait(job));
}

static void control_blocks(void **state)
{
	version_use uses[] = { run, run_numa, start_and_wait };
	DEFINE_KTASK_CTL(small, count_units, NULL, UNITS);
	DEFINE_KTASK_CTL(large, count_units, NULL, 1);

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(uses); i++) {
		version_check_read(uses[i], &small, sizeof(small),
				   LEAST(ktask_ctl, min_chunk_size), 1);
		version_check_read(uses[i], &large, sizeof(large),
				   LEAST(ktask_ctl, min_chunk_size), 1);
	}
}

/* ---- results ---- */

/* What is not the same each time. */
static void hide_times(struct ktask_result *result)
{
	size_t from = offsetof(struct ktask_result, wall_ns);
	size_t to = offsetof(struct ktask_result, nr_nodes);

	for (size_t i = from; i < to && i < result->struct_size; i++)
		((char *)result)[i] = 0;
}

static int run_with_result(void *result)
{
	DEFINE_KTASK_CTL(ctl, count_units, NULL, UNITS);
	int error;

	ktask_ctl_set_max_threads(&ctl, 1);
	ktask_ctl_set_result(&ctl, result);
	error = run(&ctl);
	if (!error)
		hide_times(result);
	return error;
}

static void results(void **state)
{
	struct ktask_result filled = KTASK_RESULT_INIT;

	assert_int_equal(run_with_result(&filled), 0);
	assert_int_equal(filled.units, UNITS);
	assert_int_equal(filled.nodes[0].units, UNITS);
	version_check_filled(run_with_result, &filled, sizeof(filled), 1);
}

static char *memory;
static struct ktask_opts op_opts = KTASK_OPTS_INIT;

static int populate(void *opts)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = memory,
				      .len = 1 };

	return ktask_op_run(ktask_op_find("populate"), &args, opts);
}

static int populate_with_result(void *result)
{
	int error;

	op_opts.max_threads = 1;
	op_opts.result = result;
	error = populate(&op_opts);
	if (!error)
		hide_times(result);
	return error;
}

static void results_of_operations(void **state)
{
	struct ktask_result filled = KTASK_RESULT_INIT;

	assert_int_equal(populate_with_result(&filled), 0);
	assert_int_equal(filled.units, sysconf(_SC_PAGESIZE));
	version_check_filled(populate_with_result, &filled, sizeof(filled), 8);
}

static void options_of_operations(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	version_check_read(populate, &opts, sizeof(opts), sizeof(size_t), 1);
}

static int populate_by_args(void *args)
{
	return ktask_op_run(ktask_op_find("populate"), args, NULL);
}

static void arguments_of_operations(void **state)
{
	struct ktask_op_args args = KTASK_OP_ARGS_INIT;

	args.addr = memory;
	args.len = 1;
	version_check_read(populate_by_args, &args, sizeof(args),
			   LEAST(ktask_op_args, len), 1);
}

/* ---- files ---- */

static int warm_files(struct ktask_file *files, size_t nr)
{
	struct ktask_op_args args = KTASK_OP_ARGS_INIT;

	args.files = files;
	args.nr_files = nr;
	return ktask_op_run(ktask_op_find("warm"), &args, NULL);
}

static int warm_file(void *file)
{
	return warm_files(file, 1);
}

static void files_of_operations(void **state)
{
	struct ktask_file file = KTASK_FILE_INIT;

	file.path = "/proc/self/exe";
	version_check_read(warm_file, &file, sizeof(file),
			   LEAST(ktask_file, size), 1);
}

/* The size of the first one says how long each is. */
static void arrays_of_longer_files(void **state)
{
	struct {
		struct ktask_file file;
		uint64_t later;
	} files[3] = { 0 };

	for (unsigned i = 0; i < 3; i++) {
		files[i].file = (struct ktask_file)KTASK_FILE_INIT;
		files[i].file.path = i == 1 ? "/nowhere" : "/proc/self/exe";
	}
	files[0].file.struct_size = sizeof(files[0]);
	assert_int_equal(warm_files(&files[0].file, 3), -ENOENT);
	assert_int_equal(files[1].file.error, -ENOENT);
	assert_int_equal(files[2].file.error, 0);
	assert_true(files[0].file.size > 0);
	assert_int_equal(files[2].file.size, files[0].file.size);
	files[0].file.struct_size = sizeof(files[0]) - 1;
	assert_int_equal(warm_files(&files[0].file, 3), -EINVAL);
	files[0].file.struct_size = sizeof(files[0]);
	files[2].later = 1;
	assert_int_equal(warm_files(&files[0].file, 3), -E2BIG);
}

/* An error before the job is told in a short result as well. */
static void results_of_what_is_refused(void **state)
{
	size_t size = LEAST(ktask_result, error);
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = memory + 1,
				      .len = 1 };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result none = { 0 };

	opts.result = version_of(&none, sizeof(none), size);
	assert_int_equal(ktask_op_run(ktask_op_find("populate"), &args, &opts),
			 -EINVAL);
	assert_int_equal(opts.result->error, -EINVAL);
	/* Also if it is the size of the arguments. */
	opts.result->error = 0;
	args.struct_size = 0;
	assert_int_equal(ktask_op_run(ktask_op_find("populate"), &args, &opts),
			 -EINVAL);
	assert_int_equal(opts.result->error, -EINVAL);
}

/* ---- what was tuned ---- */

static struct ktask_autotune tuned = { .struct_size = sizeof(tuned),
				       .name = "versions",
				       .threads = 1,
				       .max_threads = 2 };

static int put_tuned(void *any)
{
	return ktask_autotune_put(any, NULL, 0);
}

static int get_tuned(void *any)
{
	return ktask_autotune_get("versions", any);
}

static void what_was_tuned(void **state)
{
	size_t least = LEAST(ktask_autotune, max_threads);

	version_check_read(put_tuned, &tuned, sizeof(tuned), least, 1);
	tuned.chunk_us = 500;
	tuned.single_rate = 1ull << 40;
	assert_int_equal(put_tuned(&tuned), 0);
	assert_int_equal(get_tuned(&tuned), 0);
	assert_int_equal(tuned.single_rate, 1ull << 40);
	version_check_filled(get_tuned, &tuned, sizeof(tuned), 1);
}

/* ---- monitors ---- */

static int add(void *arg)
{
	return 0;
}

static void do_nothing(void *arg)
{
}

static int set_monitor(void *any)
{
	int error = ktask_set_monitor(any);

	assert_int_equal(ktask_set_monitor(NULL), 0);
	return error;
}

static void monitors(void **state)
{
	struct ktask_monitor it = { sizeof(it), NULL, add,	 do_nothing,
				    add,	-1,   do_nothing };

	version_check_read(set_monitor, &it, sizeof(it),
			   LEAST(ktask_monitor, drain), 1);
}

static struct tree tree;

static int begin(void **state)
{
	tree_begin(&tree);
	setenv("XDG_CACHE_HOME", tree.root, 1);
	memory = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE),
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	return memory == MAP_FAILED || version_begin(state);
}

static int end(void **state)
{
	tree_end(&tree);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(control_blocks),
		KTEST(results),
		KTEST(results_of_operations),
		KTEST(options_of_operations),
		KTEST(arguments_of_operations),
		KTEST(files_of_operations),
		KTEST(arrays_of_longer_files),
		KTEST(results_of_what_is_refused),
		KTEST(what_was_tuned),
		KTEST(monitors),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
