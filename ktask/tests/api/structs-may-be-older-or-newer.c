/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that were built with an older or a newer header are served: of each
 * structure with a size as much is read, or filled, as it has, nothing behind
 * it is touched, and what is not known here is refused unless it is zero.
 */
#include <ktask/ktask.h>
#include <ktask/monitor.h>
#include <ktask/ops.h>
#include <ktask/register.h>

#include "tree.h"
#include "version.h"

#define LEAST(type, field) \
	(offsetof(struct type, field) + sizeof(((struct type *)0)->field))

VERSION_NO_PADDING(ktask_ctl, reserved);
VERSION_NO_PADDING(ktask_opts, reserved);
VERSION_NO_PADDING(ktask_op_args, src_len);
VERSION_NO_PADDING(ktask_file, size);
VERSION_NO_PADDING(ktask_uring_buffers, slot_bytes);
VERSION_NO_PADDING(ktask_iommu, padding);
VERSION_NO_PADDING(ktask_verbs, nr_mrs);
VERSION_NO_PADDING(ktask_cuda, library);
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

static int run_job(void *ctl)
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
	version_use uses[] = { run_job, run_numa, start_and_wait };
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
static void hide_bytes(void *any, size_t from, size_t to)
{
	for (size_t i = from; i < to && i < *(size_t *)any; i++)
		((char *)any)[i] = 0;
}

static void hide_times(struct ktask_result *result)
{
	hide_bytes(result, offsetof(struct ktask_result, wall_ns),
		   offsetof(struct ktask_result, nr_nodes));
}

static int run_with_result(void *result)
{
	DEFINE_KTASK_CTL(ctl, count_units, NULL, UNITS);
	int error;

	ktask_ctl_set_max_threads(&ctl, 1);
	ktask_ctl_set_result(&ctl, result);
	error = run_job(&ctl);
	if (!error)
		hide_times(result);
	return error;
}

static void results_of_jobs(void **state)
{
	struct ktask_result filled = KTASK_RESULT_INIT;

	assert_int_equal(run_with_result(&filled), 0);
	assert_int_equal(filled.units, UNITS);
	assert_int_equal(filled.nodes[0].units, UNITS);
	version_check_filled(run_with_result, &filled, sizeof(filled), 1);
}

static char *memory;
static struct ktask_opts op_opts = KTASK_OPTS_INIT;

static int populate_page(void *opts)
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
	error = populate_page(&op_opts);
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

	version_check_read(populate_page, &opts, sizeof(opts), sizeof(size_t),
			   1);
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

/* ---- progress ---- */

static struct ktask_job *started;

static int poll_started(void *progress)
{
	int error = ktask_poll(started, progress);

	if (error != -EINPROGRESS)
		return error;
	hide_bytes(progress, offsetof(struct ktask_progress, elapsed_ns),
		   LEAST(ktask_progress, elapsed_ns));
	return 0;
}

/* Of a job without helpers nothing is done before it is waited for. */
static void progress_that_is_polled(void **state)
{
	struct ktask_progress filled = KTASK_PROGRESS_INIT;
	DEFINE_KTASK_CTL(ctl, count_units, NULL, 1);

	ktask_ctl_set_max_threads(&ctl, 1);
	assert_int_equal(ktask_start(&started, NULL, UNITS, &ctl), 0);
	assert_int_equal(poll_started(&filled), 0);
	assert_int_equal(filled.units_total, UNITS);
	version_check_filled(poll_started, &filled, sizeof(filled), 1);
	assert_int_equal(check_units(ktask_wait(started)), 0);
}

static int note_size(const struct ktask_progress *progress, void *arg)
{
	*(size_t *)arg = progress->struct_size;
	return 0;
}

static void progress_that_is_told(void **state)
{
	DEFINE_KTASK_CTL(ctl, count_units, NULL, 1);
	struct ktask_opts opts = KTASK_OPTS_INIT;
	size_t size = 0;

	ktask_ctl_set_progress(&ctl, note_size, &size, 1);
	assert_int_equal(run_job(&ctl), 0);
	assert_int_equal(size, sizeof(struct ktask_progress));
	size = 0;
	opts.progress_func = note_size;
	opts.progress_arg = &size;
	assert_int_equal(populate_page(&opts), 0);
	assert_int_equal(size, sizeof(struct ktask_progress));
}

/* ---- what the library tells ---- */

static int list_limit(void *limit)
{
	int nr = ktask_limits(limit, 1);

	return nr > 0 ? 0 : nr;
}

static void limits_of_threads(void **state)
{
	struct ktask_limit filled = KTASK_LIMIT_INIT;

	assert_int_equal(list_limit(&filled), 0);
	assert_string_equal(filled.name, "cpus");
	version_check_filled(list_limit, &filled, sizeof(filled), 1);
	assert_int_equal(ktask_limits(NULL, 1), -EINVAL);
}

/* The size of the first one says how long each is. */
static void arrays_of_longer_limits(void **state)
{
	struct ktask_limit known[3] = { KTASK_LIMIT_INIT };
	struct {
		struct ktask_limit limit;
		uint64_t later;
	} longer[3];

	memset(longer, 0x5a, sizeof(longer));
	longer[0].limit.struct_size = sizeof(longer[0]);
	assert_true(ktask_limits(known, 3) >= 3);
	assert_true(ktask_limits(&longer[0].limit, 3) >= 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(known[i].struct_size, sizeof(known[i]));
		assert_int_equal(longer[i].limit.struct_size,
				 sizeof(longer[i]));
		assert_string_equal(longer[i].limit.name, known[i].name);
		assert_string_equal(longer[i].limit.why, known[i].why);
		assert_int_equal(longer[i].later, 0);
	}
}

static int list_job(void *job)
{
	int nr = ktask_jobs(job, 1, NULL);

	return nr < 0 ? nr : 0;
}

static int count_permits(void *permits)
{
	int nr = ktask_jobs(NULL, 0, permits);

	if (nr < 0)
		return nr;
	hide_bytes(permits, offsetof(struct ktask_permits_info, used),
		   LEAST(ktask_permits_info, used));
	hide_bytes(permits, offsetof(struct ktask_permits_info, cut),
		   LEAST(ktask_permits_info, cut));
	return 0;
}

static void jobs_and_permits(void **state)
{
	struct ktask_job_info job = KTASK_JOB_INFO_INIT;
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;

	/* Other tests have jobs, or have none. */
	assert_int_equal(list_job(&job), 0);
	version_refuses_garbage(list_job, &job, sizeof(job), sizeof(size_t));
	assert_int_equal(ktask_jobs(NULL, 1, NULL), -EINVAL);
	assert_int_equal(count_permits(&permits), 0);
	version_check_filled(count_permits, &permits, sizeof(permits), 1);
}

static int ask_engine(void *engine)
{
	return ktask_op_engine(ktask_op_find("populate"), engine);
}

static void engines_of_operations(void **state)
{
	struct ktask_engine filled = KTASK_ENGINE_INIT;

	assert_int_equal(ask_engine(&filled), 0);
	assert_string_equal(filled.name, "user");
	version_check_filled(ask_engine, &filled, sizeof(filled), 1);
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

/* ---- devices ---- */

/* Only what is wrong with the structure counts, not whether there is the device. */
static int keep_refusal(int error)
{
	return error == -EINVAL || error == -E2BIG ? error : 0;
}

static struct ktask_iommu iommu = KTASK_IOMMU_INIT;

/* A control block is set as far as its size goes, so it is a copy that is looked at. */
static int set_ctl(void *any)
{
	struct ktask_register_ctl *ctl = any;
	int error = ktask_register_vfio(ctl, &iommu);

	if (!error)
		hide_bytes(ctl,
			   offsetof(struct ktask_register_ctl, register_func),
			   LEAST(ktask_register_ctl, func_arg));
	return error;
}

static int use_uring(void *buffers)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	return keep_refusal(ktask_register_uring(&ctl, buffers));
}

static int use_iommu(void *any)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	return ktask_register_vfio(&ctl, any);
}

static int use_verbs(void *verbs)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	return keep_refusal(ktask_register_verbs(&ctl, verbs));
}

static int use_cuda(void *cuda)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	return keep_refusal(ktask_register_cuda(&ctl, cuda));
}

/* Programs keep them in place: all fields must be there. */
static void devices_to_register_with(void **state)
{
	struct ktask_uring_buffers buffers = KTASK_URING_BUFFERS_INIT;
	struct ktask_verbs verbs = KTASK_VERBS_INIT;
	struct ktask_cuda cuda = KTASK_CUDA_INIT;
	struct ibv_mr *mr = NULL;

	buffers.ring_fd = iommu.fd = 0;
	buffers.slot_bytes = (size_t)sysconf(_SC_PAGESIZE);
	verbs.pd = (void *)memory;
	verbs.mrs = &mr;
	verbs.mr_bytes = verbs.nr_mrs = 1;
	version_check_read(use_uring, &buffers, sizeof(buffers),
			   LEAST(ktask_uring_buffers, slot_bytes), 1);
	version_check_read(use_iommu, &iommu, sizeof(iommu),
			   LEAST(ktask_iommu, padding), 1);
	version_check_read(use_verbs, &verbs, sizeof(verbs),
			   LEAST(ktask_verbs, nr_mrs), 1);
	version_check_read(use_cuda, &cuda, sizeof(cuda),
			   LEAST(ktask_cuda, library), 1);
}

static void control_blocks_of_devices(void **state)
{
	size_t least = LEAST(ktask_register_ctl, max_piece_bytes);
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	iommu.fd = 0;
	version_refuses_garbage(set_ctl, &ctl, sizeof(ctl), least);
	ctl.flags = KTASK_REGISTER_LOCKS_MAPPINGS;
	for (size_t size = least; size <= sizeof(ctl) + 100; size++) {
		size_t shorter = size < sizeof(ctl) ? size : sizeof(ctl);
		char *it = version_of(&ctl, sizeof(ctl), size);

		memset(it + sizeof(size), 0x5a, size - sizeof(size));
		assert_int_equal(set_ctl(it), 0);
		assert_memory_equal(it + sizeof(size),
				    (char *)&ctl + sizeof(size),
				    shorter - sizeof(size));
		version_was_kept_to(it, size);
	}
}

/* ---- monitors ---- */

static int add_nothing(void *arg)
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

static void monitors_of_threads(void **state)
{
	struct ktask_monitor it = { sizeof(it),	 NULL, add_nothing, do_nothing,
				    add_nothing, -1,   do_nothing };

	version_check_read(set_monitor, &it, sizeof(it),
			   LEAST(ktask_monitor, drain), 1);
}

static struct tree tree;

static int make_memory(void **state)
{
	tree_begin(&tree);
	setenv("XDG_CACHE_HOME", tree.root, 1);
	memory = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE),
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	return memory == MAP_FAILED || version_begin(state);
}

static int remove_tree(void **state)
{
	tree_end(&tree);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(control_blocks),
		KTEST(results_of_jobs),
		KTEST(results_of_operations),
		KTEST(options_of_operations),
		KTEST(arguments_of_operations),
		KTEST(files_of_operations),
		KTEST(arrays_of_longer_files),
		KTEST(results_of_what_is_refused),
		KTEST(progress_that_is_polled),
		KTEST(progress_that_is_told),
		KTEST(limits_of_threads),
		KTEST(arrays_of_longer_limits),
		KTEST(jobs_and_permits),
		KTEST(engines_of_operations),
		KTEST(what_was_tuned),
		KTEST(devices_to_register_with),
		KTEST(control_blocks_of_devices),
		KTEST(monitors_of_threads),
	};

	return cmocka_run_group_tests(tests, make_memory, remove_tree);
}
