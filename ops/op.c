/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The table of operations, and the way from a caller's arguments to a job.
 *
 * Owns the checks that all operations share, the translation of options into
 * a control block, and the public one-line functions.  Does not know what any
 * operation does.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "mapping.h"
#include "op.h"

static const struct ktask_op *const ops[] = {
	&op_populate, &op_fill,	 &op_copy,   &op_discard,
	&op_lock,     &op_unmap, &op_unlock, &op_collapse,
	&op_migrate,  &op_warm,	 &op_sync,   &op_copy_file,
};

#define NR_OPS (sizeof(ops) / sizeof(ops[0]))

const struct ktask_op *ktask_op_at(unsigned index)
{
	return index < NR_OPS ? ops[index] : NULL;
}

const struct ktask_op *ktask_op_find(const char *name)
{
	for (unsigned i = 0; name && i < NR_OPS; i++)
		if (!strcmp(ops[i]->name, name))
			return ops[i];
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

bool op_is_small(const struct op_job *job)
{
	size_t least = job->min_chunk;

	return job->len / 2 < (least > job->align ? least : job->align);
}

static unsigned max_threads(const struct op_job *job)
{
	struct ktask_learnt learnt = KTASK_LEARNT_INIT;

	if (job->opts->max_threads || !job->op->usual_threads)
		return job->opts->max_threads;
	if (!ktask_learnt_get(job->op->name, &learnt) && learnt.measured)
		return learnt.threads;
	return job->op->usual_threads;
}

static void init_ctl(struct ktask_ctl *ctl, struct op_job *job,
		     ktask_thread_func chunk)
{
	const struct ktask_opts *opts = job->opts;
	size_t least = job->min_chunk;

	/* A page that two chunks share would be made by two threads at once. */
	if (least < job->align)
		least = job->align;
	ktask_ctl_init(ctl, chunk, job, least);
	ktask_ctl_set_align(ctl, job->align);
	ktask_ctl_set_name(ctl, job->op->name);
	ktask_ctl_set_max_threads(ctl, max_threads(job));
	ktask_ctl_set_chunk_us(ctl, opts->chunk_us);
	ctl->flags = opts->flags;
	ktask_ctl_set_deadline(ctl, opts->deadline_ns);
	ktask_ctl_set_progress(ctl, opts->progress_func, opts->progress_arg,
			       opts->progress_ms);
	ktask_ctl_set_result(ctl, job->result);
}

static int go(struct op_job *job, const struct ktask_ctl *ctl)
{
	int error;

	job->running = true;
	error = ktask_run(job->addr, job->len, ctl);
	job->running = false;
	return error;
}

static int follow_and_work(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;

	if (!pthread_equal(pthread_self(), job->caller))
		policy_follow(&job->policy);
	return job->work(start, end, arg);
}

int op_go(struct op_job *job, ktask_thread_func chunk)
{
	struct ktask_ctl ctl;

	if (job->op->makes_pages && !op_is_small(job)) {
		job->work = chunk;
		job->caller = pthread_self();
		policy_read(&job->policy);
		chunk = follow_and_work;
	}
	init_ctl(&ctl, job, chunk);
	return go(job, &ctl);
}

int op_go_whole(struct op_job *job, ktask_thread_func chunk)
{
	struct ktask_ctl ctl;

	init_ctl(&ctl, job, chunk);
	ctl.min_chunk_size = job->len;
	ktask_ctl_set_max_threads(&ctl, 1);
	return go(job, &ctl);
}

static void add_result(struct op_job *job, const struct ktask_result *part)
{
	struct ktask_result *sum = job->result;

	if (part->error) {
		sum->error = part->error;
		sum->fail_error = part->fail_error;
		sum->fail_pos = part->fail_pos;
		sum->fail_offset = (size_t)((char *)part->fail_pos - job->addr);
	}
	if (part->threads > sum->threads)
		sum->threads = part->threads;
	sum->helpers_lent += part->helpers_lent;
	sum->chunks += part->chunks;
	sum->units += part->units;
	sum->wall_ns += part->wall_ns;
	sum->cpu_ns += part->cpu_ns;
	sum->tail_ns += part->tail_ns;
	if (!sum->nr_nodes) {
		sum->nr_nodes = part->nr_nodes;
		memcpy(sum->nodes, part->nodes, sizeof(sum->nodes));
	}
}

int op_go_part(struct op_job *job, uintptr_t start, uintptr_t end,
	       ktask_thread_func chunk)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct op_job part = *job;
	int error;

	if (start == (uintptr_t)job->addr && end == start + job->len) {
		if (job->op->makes_pages)
			mapping_first_page(job, chunk);
		return op_go(job, chunk);
	}
	part.addr = (char *)start;
	part.len = end - start;
	part.result = &result;
	if (job->op->makes_pages)
		mapping_first_page(&part, chunk);
	error = op_go(&part, chunk);
	if (op_suspect(&part))
		op_note_suspect(job, op_suspect(&part));
	if (job->result)
		add_result(job, &result);
	return error;
}

void op_fail_at(const struct op_job *job, uintptr_t pos)
{
	if (job->running)
		ktask_fail_at((void *)pos);
}

int op_fail(struct op_job *job, int error, const void *pos)
{
	struct ktask_result *result = job->result;

	if (!result)
		return error;
	result->error = error;
	result->fail_error = error;
	result->fail_pos = (void *)pos;
	result->fail_offset = (size_t)((const char *)pos - job->addr);
	result->fail_range = 0;
	return error;
}

void op_note_suspect(struct op_job *job, uintptr_t pos)
{
	uintptr_t seen = atomic_load(&job->suspect);

	while ((!seen || pos < seen) &&
	       !atomic_compare_exchange_weak(&job->suspect, &seen, pos))
		;
}

uintptr_t op_suspect(const struct op_job *job)
{
	return atomic_load(&job->suspect);
}

bool op_may_be_cancelled(const struct op_job *job)
{
	return job->opts->deadline_ns || job->opts->progress_func;
}

/*
 * Size first: a program built with a later header may pass a longer struct,
 * as long as it asks for nothing that this library does not know.
 */
static int check_opts(const struct ktask_opts *opts)
{
	const unsigned char *byte = (const unsigned char *)opts;

	if (opts->struct_size < sizeof(*opts))
		return -EINVAL;
	for (size_t i = sizeof(*opts); i < opts->struct_size; i++)
		if (byte[i])
			return -EINVAL;
	for (unsigned i = 0; i < 3; i++)
		if (opts->reserved[i])
			return -EINVAL;
	if (opts->flags & ~KTASK_FIXED)
		return -EINVAL;
	if (opts->result && opts->result->struct_size < sizeof(*opts->result))
		return -EINVAL;
	return 0;
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

/* What stands in each of them is the operation's to check. */
static int check_files(const struct ktask_op_args *args)
{
	if (args->addr || args->len || args->src || args->src_len)
		return -EINVAL;
	return args->nr_files && !args->files ? -EINVAL : 0;
}

static int check_args(const struct ktask_op *op,
		      const struct ktask_op_args *args)
{
	if (args->flags & ~op->known_flags)
		return -EINVAL;
	if (!op->validate && (args->src || args->src_len))
		return -EINVAL;
	if (args->pid < 0 || (args->pid && !op->takes_pid))
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
	struct op_job job = {
		.op = op,
		.addr = args->addr,
		.len = (args->len + page - 1) & ~(page - 1),
		.flags = args->flags,
		.pid = args->pid && args->pid != getpid() ? args->pid : 0,
		.src = args->src,
		.src_len = args->src_len,
		.files = args->files,
		.nr_files = args->nr_files,
		.min_chunk = op->min_chunk,
		.opts = opts,
		.result = opts->result,
	};

	if (!job.len && !job.nr_files)
		return 0;
	op->align(&job);
	return op->around ? op->around(&job) : op_go(&job, op->chunk);
}

static void init_result(struct ktask_result *result,
			const struct ktask_op_args *args, int error)
{
	size_t size = result->struct_size;

	memset(result, 0, sizeof(*result));
	result->struct_size = size;
	result->error = error;
	result->fail_error = error;
	if (error)
		result->fail_pos = args->addr;
}

int ktask_op_run(const struct ktask_op *op, const struct ktask_op_args *args,
		 const struct ktask_opts *opts)
{
	static const struct ktask_opts defaults = KTASK_OPTS_INIT;
	int saved_errno = errno;
	int cancel_state, error;

	if (!opts)
		opts = &defaults;
	if (!op || !args || check_opts(opts))
		return -EINVAL;
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

int ktask_collapse(void *addr, size_t len, unsigned flags)
{
	return run_simple(&op_collapse, addr, len, flags);
}

int ktask_lock(void *addr, size_t len, unsigned flags)
{
	return run_simple(&op_lock, addr, len, flags);
}

int ktask_fill(void *addr, size_t len, const void *pattern, size_t pattern_len,
	       unsigned flags)
{
	struct ktask_op_args args = {
		.addr = addr,
		.len = len,
		.flags = flags,
		.src = pattern,
		.src_len = pattern_len,
	};

	return ktask_op_run(&op_fill, &args, NULL);
}

int ktask_copy(void *dst, const void *src, size_t len, unsigned flags)
{
	struct ktask_op_args args = {
		.addr = dst,
		.len = len,
		.flags = flags,
		.src = src,
	};

	return ktask_op_run(&op_copy, &args, NULL);
}

int ktask_migrate(void *addr, size_t len, const unsigned long *nodes,
		  size_t nr_nodes, unsigned flags)
{
	struct ktask_op_args args = {
		.addr = addr,
		.len = len,
		.flags = flags,
		.src = nodes,
		.src_len = nr_nodes,
	};

	return ktask_op_run(&op_migrate, &args, NULL);
}

static int run_file(const struct ktask_op *op, struct ktask_file *file,
		    unsigned flags)
{
	struct ktask_op_args args = {
		.files = file,
		.nr_files = 1,
		.flags = flags,
	};

	return ktask_op_run(op, &args, NULL);
}

int ktask_warm(int fd, uint64_t offset, uint64_t len, unsigned flags)
{
	struct ktask_file file = { .fd = fd, .offset = offset, .len = len };

	return run_file(&op_warm, &file, flags);
}

int ktask_sync(int fd, uint64_t offset, uint64_t len, unsigned flags)
{
	struct ktask_file file = { .fd = fd, .offset = offset, .len = len };

	return run_file(&op_sync, &file, flags);
}

int ktask_copy_file(int dst_fd, uint64_t dst_offset, int fd, uint64_t offset,
		    uint64_t len, unsigned flags)
{
	struct ktask_file file = { .fd = fd,
				   .offset = offset,
				   .len = len,
				   .dst_fd = dst_fd,
				   .dst_offset = dst_offset };

	return run_file(&op_copy_file, &file, flags);
}
