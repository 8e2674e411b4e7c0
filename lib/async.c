/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs that go on while their caller does something else.
 *
 * A struct ktask_job is a run on the heap.  Whoever waits becomes its caller:
 * works on it, lends its priority, undoes, fills the result.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/run.h"

struct ktask_job {
	struct run run;
	struct ktask_ctl ctl;
};

static int start(struct ktask_job **out, const struct ktask_node *nodes,
		 size_t nr_nodes, const struct ktask_ctl *ctl)
{
	struct ktask_job *job = aligned_alloc(_Alignof(struct ktask_job),
					      sizeof(struct ktask_job));
	int error;

	if (!job)
		return -ENOMEM;
	job->ctl = *ctl;
	error = run_init(&job->run, nodes, nr_nodes, &job->ctl);
	if (error) {
		free(job);
		return error;
	}
	/* It may outlive the chunk that starts it, and with it the budget. */
	job->run.parent = NULL;
	run_begin(&job->run, true);
	*out = job;
	return 0;
}

int ktask_start_numa(struct ktask_job **job, const struct ktask_node *nodes,
		     size_t nr_nodes, const struct ktask_ctl *ctl)
{
	int saved = errno;
	int cancel_state;
	int error;

	if (!job)
		return -EINVAL;
	*job = NULL;
	error = run_check(ctl, nodes, nr_nodes);
	if (error)
		return error;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	error = start(job, nodes, nr_nodes, ctl);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return error;
}

int ktask_start(struct ktask_job **job, void *start_pos, size_t task_size,
		const struct ktask_ctl *ctl)
{
	struct ktask_node any = { start_pos, task_size, NUMA_NO_NODE };

	return ktask_start_numa(job, &any, 1, ctl);
}

int ktask_wait(struct ktask_job *job)
{
	int saved = errno;
	int cancel_state;
	int error;

	if (!job)
		return -EINVAL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	/* Started before a fork: helpers, and their chunks, are the parent's. */
	run_check_fork(&job->run);
	run_work(&job->run);
	error = run_end(&job->run);
	run_release(&job->run);
	free(job);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return error;
}

void ktask_cancel(struct ktask_job *job)
{
	if (job && !kt_job_idle(&job->run.job))
		kt_job_stop(&job->run.job, -ECANCELED);
}

int ktask_poll(struct ktask_job *job, struct ktask_progress *progress)
{
	if (!job)
		return -EINVAL;
	if (progress)
		run_progress(&job->run, progress);
	return run_settled(&job->run) ? 0 : -EINPROGRESS;
}
