/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs that go on while their caller does something else.
 *
 * A struct ktask_job is a job that outlives the call.  Whoever waits becomes
 * its caller: works on it, lends its priority, undoes, fills the result.
 *
 * The first ones of a process lie in static buffers, more on the heap.  Ending a
 * job in a buffer takes no lock of an allocator.  The preload shim may be called
 * with that lock held, or in a signal handler that interrupted the allocator.
 *
 * Locking: taken is a lock of one word, taken by compare-and-swap.  The job belongs to
 * the thread that started it, and then to the one that waits for it.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/struct_size.h"
#include "user/user_job.h"
#include "util/large_static.h"
#include "util/scoped.h"

struct ktask_job {
	struct user_job job;
	struct ktask_ctl ctl;
};

/* As many as prefault.c of the shim has at once. */
#define NR_BUFFERS 32

static struct started_buffer {
	struct ktask_job job;
	uint32_t taken;
} started_buffers[NR_BUFFERS] LARGE_STATIC;

static struct ktask_job *get_job(void)
{
	for (struct started_buffer *buffer = started_buffers;
	     buffer < started_buffers + NR_BUFFERS; buffer++) {
		uint32_t taken = kt_load(&buffer->taken);

		if (!taken && kt_cas(&buffer->taken, &taken, 1))
			return &buffer->job;
	}
	return aligned_alloc(_Alignof(struct ktask_job),
			     sizeof(struct ktask_job));
}

static void put_job(struct ktask_job *job)
{
	uintptr_t offset = (uintptr_t)job - (uintptr_t)started_buffers;

	if (offset < sizeof(started_buffers))
		kt_store_release(&((struct started_buffer *)job)->taken, 0);
	else
		free(job);
}

static int start_job(struct ktask_job **out, const struct ktask_node *nodes,
		     size_t nr_nodes, const struct ktask_ctl *ctl)
{
	struct ktask_job *job = get_job();
	int error;

	if (!job)
		return -ENOMEM;
	job->ctl = *ctl;
	error = job_init(&job->job, nodes, nr_nodes, &job->ctl);
	if (error) {
		put_job(job);
		return error;
	}
	/* It may outlive the chunk that starts it, and with it the budget. */
	job->job.parent = NULL;
	job_begin(&job->job, true);
	*out = job;
	return 0;
}

int ktask_start_numa(struct ktask_job **job, const struct ktask_node *nodes,
		     size_t nr_nodes, const struct ktask_ctl *ctl)
{
	struct ktask_ctl own;
	keep_errno();
	int error;

	if (!job)
		return -EINVAL;
	*job = NULL;
	error = job_take_ctl(&own, ctl);
	if (!error)
		error = job_check(&own, nodes, nr_nodes);
	if (error)
		return error;
	block_cancellation();
	return start_job(job, nodes, nr_nodes, &own);
}

int ktask_start(struct ktask_job **job, void *start_pos, size_t task_size,
		const struct ktask_ctl *ctl)
{
	struct ktask_node any = { start_pos, task_size, NUMA_NO_NODE };

	return ktask_start_numa(job, &any, 1, ctl);
}

int ktask_wait(struct ktask_job *job)
{
	keep_errno();
	int error;

	if (!job)
		return -EINVAL;
	block_cancellation();
	/* Started before a fork: helpers, and their chunks, are the parent's. */
	job_check_fork(&job->job);
	kt_store(&job->job.ctx.detached, false);
	job_work(&job->job);
	error = job_end(&job->job);
	job_release(&job->job);
	put_job(job);
	return error;
}

void ktask_cancel(struct ktask_job *job)
{
	if (job && !kt_job_idle(&job->job.ctx.job))
		kt_job_stop(&job->job.ctx.job, -ECANCELED);
}

int ktask_poll(struct ktask_job *job, struct ktask_progress *progress)
{
	struct ktask_progress known = { 0 };
	int error;

	if (!job)
		return -EINVAL;
	if (progress) {
		error = struct_size_check(progress->struct_size,
					  STRUCT_SIZE_ONLY);
		if (error)
			return error;
		job_progress(&job->job, &known);
		struct_size_write(progress, &known, sizeof(known));
	}
	return kt_context_settled(&job->job.ctx) ? 0 : -EINPROGRESS;
}
