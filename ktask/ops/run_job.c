/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The jobs of an operation: options become a control block.  Several jobs of one call
 * have one deadline, one progress and one result.
 *
 * Locking: op.h.
 */
#include <errno.h>
#include <pthread.h>

#include "mapping.h"
#include "op.h"
#include "user/job_waits.h"

bool op_is_small(const struct op_job *job)
{
	size_t least = job->min_chunk;

	return job->len / 2 < (least > job->align ? least : job->align);
}

void op_begin(struct op_job *job)
{
	if (op_may_be_cancelled(job))
		job->watch->begin_ns = op_now_ns();
}

/* One deadline for all jobs of a call. */
static uint64_t deadline_left(const struct op_job *job)
{
	uint64_t deadline_ns = job->opts->deadline_ns, passed_ns;

	if (!deadline_ns)
		return 0;
	passed_ns = op_now_ns() - job->watch->begin_ns;
	return deadline_ns > passed_ns ? deadline_ns - passed_ns : 1;
}

bool op_is_late(const struct op_job *job)
{
	return job->opts->deadline_ns && deadline_left(job) <= 1;
}

/* A request to stop at the end of one job also holds for the jobs after it. */
static int report_progress(const struct ktask_progress *progress, void *arg)
{
	const struct op_job *job = arg;
	int stop = job->opts->progress_func(progress, job->opts->progress_arg);

	job->watch->stop = job->watch->stop || stop;
	return stop;
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
	ktask_ctl_set_max_threads(ctl, opts->max_threads);
	ktask_ctl_set_chunk_us(ctl, opts->chunk_us);
	ctl->flags = opts->flags;
	if (job->op->on_files)
		ktask_ctl_set_blocks(ctl);
	ktask_ctl_set_deadline(ctl, deadline_left(job));
	ktask_ctl_set_progress(ctl,
			       opts->progress_func ? report_progress : NULL,
			       job, opts->progress_ms);
	ktask_ctl_set_result(ctl, job->result);
}

static int run_part(struct op_job *job, const struct ktask_ctl *ctl)
{
	int error;

	if (job->watch->stop)
		return op_fail(job, -ECANCELED, NULL);
	job->running = true;
	job_expect_faults(job->op->faults_only);
	error = ktask_run(job->addr, job->len, ctl);
	job_expect_faults(false);
	job->running = false;
	return error;
}

static int follow_and_work(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;
	int error;

	if (pthread_equal(pthread_self(), job->caller))
		return job->work(start, end, arg);
	policy_follow(&job->policy);
	error = job->work(start, end, arg);
	policy_return();
	return error;
}

/* Return: what the job calls: @chunk, or what has helpers follow the caller. */
static ktask_thread_func follow_policy(struct op_job *job,
				       ktask_thread_func chunk)
{
	if (!job->op->makes_pages || op_is_small(job))
		return chunk;
	job->work = chunk;
	job->caller = pthread_self();
	policy_read(&job->policy);
	return follow_and_work;
}

int op_run_job(struct op_job *job, ktask_thread_func chunk)
{
	struct ktask_ctl ctl;

	chunk = follow_policy(job, chunk);
	init_ctl(&ctl, job, chunk);
	return run_part(job, &ctl);
}

int op_start_job(struct op_job *job, ktask_thread_func chunk,
		 struct ktask_job **started)
{
	struct ktask_ctl ctl;
	int error;

	*started = NULL;
	if (job->watch->stop)
		return op_fail(job, -ECANCELED, NULL);
	chunk = follow_policy(job, chunk);
	init_ctl(&ctl, job, chunk);
	job->running = true;
	error = ktask_start(started, job->addr, job->len, &ctl);
	/* Otherwise helpers read it. */
	if (error)
		job->running = false;
	return error;
}

int op_wait_job(struct op_job *job, struct ktask_job *started)
{
	int error = ktask_wait(started);

	job->running = false;
	return error;
}

int op_run_whole(struct op_job *job, ktask_thread_func chunk)
{
	struct ktask_ctl ctl;

	init_ctl(&ctl, job, chunk);
	ctl.min_chunk_size = job->len;
	ktask_ctl_set_max_threads(&ctl, 1);
	return run_part(job, &ctl);
}

/* As in the result of a single job, further nodes are added up in the last entry. */
static void add_node(struct ktask_result *sum,
		     const struct ktask_node_result *part)
{
	unsigned i = 0;

	while (i < sum->nr_nodes && sum->nodes[i].nid != part->nid)
		i++;
	if (i == KTASK_RESULT_NODES)
		i--;
	else if (i == sum->nr_nodes)
		sum->nodes[sum->nr_nodes++].nid = part->nid;
	sum->nodes[i].chunks += part->chunks;
	sum->nodes[i].units += part->units;
	sum->nodes[i].remote_chunks += part->remote_chunks;
}

/* Without a position no chunk has failed: a deadline, or the caller's wish. */
static void add_failure(struct op_job *job, const struct ktask_result *part)
{
	struct ktask_result *sum = job->result;

	sum->error = part->error;
	sum->fail_error = part->fail_error;
	sum->fail_pos = part->fail_pos;
	sum->fail_offset = 0;
	if (part->fail_pos)
		sum->fail_offset = (size_t)((char *)part->fail_pos - job->addr);
}

void op_add_result(struct op_job *job, const struct ktask_result *part)
{
	struct ktask_result *sum = job->result;

	if (!sum)
		return;
	if (part->error)
		add_failure(job, part);
	if (part->threads > sum->threads)
		sum->threads = part->threads;
	sum->helpers_lent += part->helpers_lent;
	sum->chunks += part->chunks;
	sum->units += part->units;
	sum->wall_ns += part->wall_ns;
	sum->cpu_ns += part->cpu_ns;
	sum->tail_ns += part->tail_ns;
	if (part->largest_chunk > sum->largest_chunk)
		sum->largest_chunk = part->largest_chunk;
	for (unsigned i = 0; i < part->nr_nodes; i++)
		add_node(sum, &part->nodes[i]);
}

int op_run_part(struct op_job *job, uintptr_t start, uintptr_t end,
		ktask_thread_func chunk)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct op_job part = *job;
	int error;

	if (start == (uintptr_t)job->addr && end == start + job->len) {
		if (job->op->makes_pages)
			mapping_first_page(job, chunk);
		return op_run_job(job, chunk);
	}
	part.addr = (char *)start;
	part.len = end - start;
	part.result = &result;
	if (job->op->makes_pages)
		mapping_first_page(&part, chunk);
	error = op_run_job(&part, chunk);
	if (op_suspect(&part))
		op_note_suspect(job, op_suspect(&part));
	op_add_result(job, &result);
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
	result->fail_error = pos ? error : 0;
	result->fail_pos = (void *)pos;
	result->fail_offset = pos ? (size_t)((const char *)pos - job->addr) : 0;
	result->fail_range = 0;
	return error;
}

void op_succeed(struct op_job *job)
{
	op_fail(job, 0, NULL);
	if (job->result)
		job->result->units = job->len;
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
