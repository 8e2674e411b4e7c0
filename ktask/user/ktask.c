/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The public calls for jobs that are waited for at once, and for small jobs.
 *
 * A job that is too small to split does not enter the engine: it takes no memory, no
 * system call and no helper.
 */
#include <errno.h>

#include "user/user_job.h"
#include "util/large_static.h"
#include "util/scoped.h"
#include "common/struct_size.h"

#ifndef KTASK_VERSION
#define KTASK_VERSION "unknown"
#endif

const char *ktask_version(void)
{
	return KTASK_VERSION;
}

void *ktask_iter_range(void *position, size_t size)
{
	return (char *)position + size;
}

void ktask_fail_at(void *position)
{
	struct job_current *current = job_current();

	if (current->worker)
		current->worker->fail_pos = position;
}

/* Of the size that is known here. */
static bool ctl_valid(const struct ktask_ctl *ctl)
{
	if (!ctl || ctl->struct_size != sizeof(*ctl))
		return false;
	if (!ctl->thread_func || !ctl->min_chunk_size ||
	    (ctl->flags & ~(KTASK_FIXED | KTASK_BLOCKS)))
		return false;
	if (ctl->align & (ctl->align - 1))
		return false;
	if (ctl->cpus && !ctl->cpus_size)
		return false;
	for (size_t i = 0; i < sizeof(ctl->reserved) / sizeof(uint64_t); i++)
		if (ctl->reserved[i])
			return false;
	return true;
}

int job_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes)
{
	int error = 0;

	if (!ctl_valid(ctl) || (nr_nodes && !nodes))
		return -EINVAL;
	if (ctl->result)
		error = struct_size_check(ctl->result->struct_size,
					  STRUCT_SIZE_ONLY);
	if (error)
		return error;
	for (size_t i = 0; i < nr_nodes; i++)
		if (nodes[i].nid < NUMA_NO_NODE)
			return -EINVAL;
	return 0;
}

static int do_job(struct user_job *job, const struct ktask_node *nodes,
		  size_t nr_nodes, const struct ktask_ctl *ctl)
{
	int error = job_init(job, nodes, nr_nodes, ctl);

	if (error)
		return error;
	job_begin(job, false);
	job_work(job);
	error = job_end(job);
	job_release(job);
	return error;
}

/*
 * A job is 7 KiB, and its caller may have little stack.  So a job lies in one of these
 * buffers, if one is free.  The one that the thread used last is tried first.  They are
 * not on the heap: see user/user_async.c.  After a fork, the child can no longer use the
 * buffers that other threads had at that moment.
 *
 * Locking: taken is a lock of one word, taken by compare-and-swap.  The job belongs
 * to the thread that took it.
 */
#define NR_BUFFERS 32

static struct job_buffer {
	struct user_job job;
	uint32_t taken;
} job_buffers[NR_BUFFERS] LARGE_STATIC;

static __thread unsigned last_buffer;

static struct job_buffer *get_buffer(void)
{
	for (unsigned i = 0; i < NR_BUFFERS; i++) {
		unsigned index = (last_buffer + i) % NR_BUFFERS;
		struct job_buffer *buffer = &job_buffers[index];
		uint32_t taken = kt_load(&buffer->taken);

		if (taken || !kt_cas(&buffer->taken, &taken, 1))
			continue;
		last_buffer = index;
		return buffer;
	}
	return NULL;
}

/* A function of its own, so that the job is not in the frame of its caller. */
__attribute__((noinline)) static int
run_on_stack(const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl)
{
	struct user_job job;

	return do_job(&job, nodes, nr_nodes, ctl);
}

static int run_nodes(const struct ktask_node *nodes, size_t nr_nodes,
		     const struct ktask_ctl *ctl)
{
	struct job_buffer *buffer = get_buffer();
	int error;

	if (!buffer)
		return run_on_stack(nodes, nr_nodes, ctl);
	error = do_job(&buffer->job, nodes, nr_nodes, ctl);
	kt_store_release(&buffer->taken, 0);
	return error;
}

int job_take_ctl(struct ktask_ctl *own, const struct ktask_ctl *ctl)
{
	if (!ctl)
		return -EINVAL;
	return struct_size_read(
		own, sizeof(*own), ctl,
		STRUCT_SIZE_TO(struct ktask_ctl, min_chunk_size));
}

/* Copies a control block of another version.  Apart, because most programs need no copy. */
__attribute__((noinline)) static int
run_numa_of_copy(const struct ktask_node *nodes, size_t nr_nodes,
		 const struct ktask_ctl *ctl)
{
	struct ktask_ctl own;
	int error = job_take_ctl(&own, ctl);

	return error ? error : ktask_run_numa(nodes, nr_nodes, &own);
}

int ktask_run_numa(const struct ktask_node *nodes, size_t nr_nodes,
		   const struct ktask_ctl *ctl)
{
	keep_errno();
	int error;

	if (!ctl || ctl->struct_size != sizeof(*ctl))
		return run_numa_of_copy(nodes, nr_nodes, ctl);
	error = job_check(ctl, nodes, nr_nodes);
	if (error)
		return error;
	/* A cancelled caller would leave helpers with a dead stack. */
	block_cancellation();
	return run_nodes(nodes, nr_nodes, ctl);
}

static bool too_small(size_t size, const struct ktask_ctl *ctl)
{
	return size / 2 < ctl->min_chunk_size && !ctl->progress_func &&
	       !ctl->deadline_ns && !ctl->result;
}

/* The function is the job: nothing to split, watch or undo. */
static int call_directly(void *start, size_t size, const struct ktask_ctl *ctl)
{
	ktask_iter_func iter =
		ctl->iter_func ? ctl->iter_func : ktask_iter_range;
	struct job_current *current = job_current();
	struct kt_worker *outer = current->worker;
	int error;

	block_cancellation();
	current->worker = NULL;
	error = ctl->thread_func(start, iter(start, size), ctl->func_arg);
	current->worker = outer;
	return error;
}

/* Positions of the default iterator are addresses, as in kt_job_check(). */
static bool runs_over(void *start, size_t size, const struct ktask_ctl *ctl)
{
	return (!ctl->iter_func || ctl->iter_func == ktask_iter_range) &&
	       size > UINTPTR_MAX - (uintptr_t)start;
}

__attribute__((noinline)) static int run_of_copy(void *start, size_t task_size,
						 const struct ktask_ctl *ctl)
{
	struct ktask_ctl own;
	int error = job_take_ctl(&own, ctl);

	if (!error && !ctl_valid(&own))
		error = -EINVAL;
	return error ? error : ktask_run(start, task_size, &own);
}

int ktask_run(void *start, size_t task_size, const struct ktask_ctl *ctl)
{
	struct ktask_node any = { start, task_size, NUMA_NO_NODE };
	keep_errno();

	/* Checking for another version comes last, because small jobs are short. */
	if (!ctl_valid(ctl))
		return run_of_copy(start, task_size, ctl);
	if (!too_small(task_size, ctl))
		return ktask_run_numa(&any, 1, ctl);
	if (runs_over(start, task_size, ctl))
		return -EINVAL;
	if (!task_size)
		return 0;
	return call_directly(start, task_size, ctl);
}
