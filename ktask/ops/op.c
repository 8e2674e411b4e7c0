/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The table of operations, and the way from a caller's arguments to one of
 * them.
 *
 * Owns the checks that all operations share and the public one-line functions.
 * Does not know what any operation does, nor how its jobs are done (run_job.c).
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "mapping.h"
#include "op.h"
#include "common/struct_size.h"

static const struct ktask_op *const all_ops[] = {
	&op_populate, &op_fill,	  &op_discard, &op_lock,
	&op_unmap,    &op_unlock, &op_warm,
};

#define NR_OPS (sizeof(all_ops) / sizeof(all_ops[0]))

const struct ktask_op *ktask_op_at(unsigned index)
{
	return index < NR_OPS ? all_ops[index] : NULL;
}

const struct ktask_op *ktask_op_find(const char *name)
{
	for (unsigned i = 0; name && i < NR_OPS; i++)
		if (!strcmp(all_ops[i]->name, name))
			return all_ops[i];
	return NULL;
}

const char *ktask_op_name(const struct ktask_op *op)
{
	return op ? op->name : NULL;
}

const char *ktask_op_summary(const struct ktask_op *op)
{
	return op ? op->summary : NULL;
}

size_t ktask_op_min_chunk(const struct ktask_op *op)
{
	return op ? op->min_chunk : 0;
}

size_t op_page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int op_check_opts(const struct ktask_opts *opts)
{
	for (unsigned i = 0; i < 3; i++)
		if (opts->reserved[i])
			return -EINVAL;
	if (opts->flags & ~KTASK_FIXED)
		return -EINVAL;
	if (!opts->result)
		return 0;
	return struct_size_check(opts->result->struct_size, STRUCT_SIZE_ONLY);
}

static int check_range(const struct ktask_op *op,
		       const struct ktask_op_args *args)
{
	size_t page = op->unit ? 1 : op_page_bytes();
	uintptr_t start = (uintptr_t)args->addr;
	size_t len = args->len;

	if (!start || start & (page - 1))
		return -EINVAL;
	if (len > SIZE_MAX - (page - 1))
		return -EINVAL;
	len = (len + page - 1) & ~(page - 1);
	return len > UINTPTR_MAX - start ? -EINVAL : 0;
}

/* They are used where they are, so no field may be missing. */
static int check_sizes_of_files(const struct ktask_op_args *args)
{
	size_t least = STRUCT_SIZE_TO(struct ktask_file, size);
	size_t size = args->files->struct_size;
	int error = struct_size_check(size, least);

	if (!error && args->nr_files > 1 && size % _Alignof(struct ktask_file))
		error = -EINVAL;
	for (size_t i = 0; !error && size > least && i < args->nr_files; i++)
		error = struct_size_check_rest((char *)args->files + i * size,
					       size, sizeof(struct ktask_file));
	return error;
}

/* The operation itself checks the contents of each file structure. */
static int check_files(const struct ktask_op_args *args)
{
	if (args->addr || args->len || args->src || args->src_len)
		return -EINVAL;
	if (!args->nr_files)
		return 0;
	return args->files ? check_sizes_of_files(args) : -EINVAL;
}

static int check_args(const struct ktask_op *op,
		      const struct ktask_op_args *args)
{
	if (args->flags & ~op->known_flags)
		return -EINVAL;
	if (!op->validate && (args->src || args->src_len))
		return -EINVAL;
	if (op->on_files)
		return check_files(args);
	if (args->files || args->nr_files)
		return -EINVAL;
	if (args->len) {
		int error = check_range(op, args);

		if (error)
			return error;
	}
	return op->validate ? op->validate(args) : 0;
}

static int run_checked(const struct ktask_op *op,
		       const struct ktask_op_args *args,
		       const struct ktask_opts *opts)
{
	size_t page = op->unit ? 1 : op_page_bytes();
	struct op_watch watch = { 0 };
	struct op_job job = {
		.op = op,
		.addr = args->addr,
		.len = (args->len + page - 1) & ~(page - 1),
		.flags = args->flags,
		.src = args->src,
		.src_len = args->src_len,
		.files = args->files,
		.file_bytes = args->nr_files ? args->files->struct_size : 0,
		.nr_files = args->nr_files,
		.min_chunk = op->min_chunk,
		.opts = opts,
		.watch = &watch,
		.result = opts->result,
	};

	if (!job.len && !job.nr_files)
		return 0;
	op_begin(&job);
	op->align(&job);
	return op->around ? op->around(&job) : op_run_job(&job, op->chunk);
}

static void init_result(struct ktask_result *result,
			const struct ktask_op_args *args, int error)
{
	memset(result, 0, sizeof(*result));
	result->struct_size = sizeof(*result);
	result->error = error;
	result->fail_error = error;
	if (error)
		result->fail_pos = args->addr;
}

/* Options of another version: by a copy. */
__attribute__((noinline)) static int
run_with_copy(const struct ktask_op *op, const struct ktask_op_args *args,
	      const struct ktask_opts *opts)
{
	struct ktask_opts own;
	int error = struct_size_read(&own, sizeof(own), opts, STRUCT_SIZE_ONLY);

	return error ? error : ktask_op_run(op, args, &own);
}

/* A result of another version: the operations fill one of ours. */
__attribute__((noinline)) static int
run_with_result(const struct ktask_op *op, const struct ktask_op_args *args,
		const struct ktask_opts *opts)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts own = *opts;
	int error;

	own.result = &result;
	error = ktask_op_run(op, args, &own);
	struct_size_write(opts->result, &result, sizeof(result));
	return error;
}

/* Arguments of another version: by a copy. */
__attribute__((noinline)) static int
run_with_args(const struct ktask_op *op, const struct ktask_op_args *args,
	      const struct ktask_opts *opts)
{
	struct ktask_op_args own = { 0 };
	int error = struct_size_read(&own, sizeof(own), args,
				     STRUCT_SIZE_TO(struct ktask_op_args, len));

	if (error && opts->result)
		init_result(opts->result, &own, error);
	return error ? error : ktask_op_run(op, &own, opts);
}

int ktask_op_run(const struct ktask_op *op, const struct ktask_op_args *args,
		 const struct ktask_opts *opts)
{
	static const struct ktask_opts defaults = KTASK_OPTS_INIT;
	int saved_errno = errno;
	int cancel_state, error;

	if (!opts)
		opts = &defaults;
	if (!op || !args)
		return -EINVAL;
	if (opts->struct_size != sizeof(*opts))
		return run_with_copy(op, args, opts);
	error = op_check_opts(opts);
	if (error)
		return error;
	if (opts->result && opts->result->struct_size != sizeof(*opts->result))
		return run_with_result(op, args, opts);
	if (args->struct_size != sizeof(*args))
		return run_with_args(op, args, opts);
	error = check_args(op, args);
	if (opts->result)
		init_result(opts->result, args, error);
	if (error)
		return error;
	/* The steps around a job open files: cancellation points. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	error = run_checked(op, args, opts);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
	return error;
}

static int run_simple(const struct ktask_op *op, const void *addr, size_t len,
		      unsigned flags)
{
	struct ktask_op_args args = {
		.struct_size = sizeof(args),
		.addr = (void *)addr,
		.len = len,
		.flags = flags,
	};

	return ktask_op_run(op, &args, NULL);
}

int ktask_populate(void *addr, size_t len, unsigned flags)
{
	return run_simple(&op_populate, addr, len, flags);
}

int ktask_discard(void *addr, size_t len, unsigned flags)
{
	return run_simple(&op_discard, addr, len, flags);
}

int ktask_unmap(void *addr, size_t len)
{
	return run_simple(&op_unmap, addr, len, 0);
}

int ktask_unlock(void *addr, size_t len)
{
	return run_simple(&op_unlock, addr, len, 0);
}

int ktask_lock(void *addr, size_t len, unsigned flags)
{
	return run_simple(&op_lock, addr, len, flags);
}

int ktask_fill(void *addr, size_t len, const void *pattern, size_t pattern_len,
	       unsigned flags)
{
	struct ktask_op_args args = {
		.struct_size = sizeof(args),
		.addr = addr,
		.len = len,
		.flags = flags,
		.src = pattern,
		.src_len = pattern_len,
	};

	return ktask_op_run(&op_fill, &args, NULL);
}

int ktask_warm(int fd, uint64_t offset, uint64_t len, unsigned flags)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .fd = fd,
				   .offset = offset,
				   .len = len };
	struct ktask_op_args args = {
		.struct_size = sizeof(args),
		.files = &file,
		.nr_files = 1,
		.flags = flags,
	};

	return ktask_op_run(&op_warm, &args, NULL);
}
