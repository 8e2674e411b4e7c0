/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One call that registers or unregisters: see register_call.h.
 *
 * Locking: registration.h.
 */
#include <errno.h>
#include <string.h>

#include "register_call.h"
#include "common/struct_size.h"
#include "util/remaining.h"

#define DEFAULT_PROGRESS_MS 100
#define NSEC_PER_MSEC 1000000ull

/* What a chunk takes by default. */
#define CHUNK_SEC 1e-3

static uint64_t bytes_done(struct register_call *call)
{
	struct ktask_registration *registration = call->registration;
	uint64_t bytes;

	pthread_mutex_lock(&registration->lock);
	bytes = registration->bytes;
	pthread_mutex_unlock(&registration->lock);
	return call->registers ? bytes : call->before_bytes - bytes;
}

/* Return: what the program's function says. */
static int tell_progress(struct register_call *call, unsigned threads)
{
	struct ktask_progress progress = {
		.struct_size = sizeof(progress),
		.units_done = bytes_done(call),
		.units_total = call->total_bytes,
		.elapsed_ns = op_now_ns() - call->begin_ns,
		.threads = threads,
	};
	int stop;

	progress.remaining_ns =
		remaining_ns(progress.elapsed_ns, progress.units_done,
			     progress.units_total - progress.units_done);
	stop = call->opts.progress_func(&progress, call->opts.progress_arg);
	call->watch.stop = call->watch.stop || stop;
	return stop;
}

/* Progress of a job of this call, between two chunks of the caller. */
static int tell_of_job(const struct ktask_progress *progress, void *arg)
{
	return tell_progress(arg, progress->threads);
}

int register_call_stop(struct register_call *call)
{
	unsigned every_ms = call->opts.progress_ms;
	uint64_t now_ns = op_now_ns();

	if (call->opts.deadline_ns &&
	    now_ns - call->begin_ns >= call->opts.deadline_ns)
		return -ETIMEDOUT;
	if (call->opts.progress_func && now_ns >= call->report_ns) {
		call->report_ns =
			now_ns + (every_ms ? every_ms : DEFAULT_PROGRESS_MS) *
					 NSEC_PER_MSEC;
		tell_progress(call, 1);
	}
	return call->watch.stop ? -ECANCELED : 0;
}

int register_call_read(struct register_call *call,
		       const struct ktask_opts *opts)
{
	int error;

	memset(call, 0, sizeof(*call));
	call->opts.struct_size = sizeof(call->opts);
	if (opts) {
		error = struct_size_read(&call->opts, sizeof(call->opts), opts,
					 STRUCT_SIZE_ONLY);
		if (!error)
			error = op_check_opts(&call->opts);
		if (error)
			return error;
	}
	call->jobs.struct_size = sizeof(call->jobs);
	return 0;
}

void register_call_begin(struct register_call *call,
			 struct ktask_registration *registration)
{
	call->registration = registration;
	call->saved_errno = errno;
	call->begin_ns = op_now_ns();
	call->report_ns = call->begin_ns;
	call->watch.begin_ns = call->begin_ns;
	call->job_opts = call->opts;
	call->job_opts.result = NULL;
	call->job_opts.chunk_us = 0;
	/* Otherwise the engine's chunks are short enough, and a helper that gets
	 * no CPU in one of them keeps the caller for less. */
	if (registration->limits.stall_sec < 2 * CHUNK_SEC)
		call->job_opts.chunk_us =
			(unsigned)(registration->limits.stall_sec * 1e6 / 2) +
			1;
	if (call->opts.progress_func) {
		call->job_opts.progress_func = tell_of_job;
		call->job_opts.progress_arg = call;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel_state);
}

void register_call_end(struct register_call *call)
{
	pthread_setcancelstate(call->cancel_state, NULL);
	errno = call->saved_errno;
}

void register_call_add(struct register_call *call,
		       const struct ktask_result *jobs)
{
	struct op_job sum = { .result = &call->jobs };

	op_add_result(&sum, jobs);
}

void register_call_result(struct register_call *call, int error, size_t bytes,
			  size_t pieces)
{
	const struct ktask_registration *registration = call->registration;
	struct ktask_result result = KTASK_RESULT_INIT;
	uintptr_t pos = registration->fail_pos;

	if (!call->opts.result)
		return;
	result.error = error;
	if (error && pos) {
		if (pos < registration->start)
			pos = registration->start;
		result.fail_error = registration->fail_error;
		result.fail_pos = (void *)pos;
		result.fail_offset = pos - registration->start;
	}
	result.threads = call->jobs.threads ? call->jobs.threads : 1;
	result.helpers_lent = call->jobs.helpers_lent;
	result.cpu_ns = call->jobs.cpu_ns;
	result.chunks = pieces;
	result.units = bytes;
	result.largest_chunk = registration->largest_bytes;
	result.wall_ns = op_now_ns() - call->begin_ns;
	struct_size_write(call->opts.result, &result, sizeof(result));
}

void register_call_tell(struct register_call *call)
{
	if (call->opts.progress_func)
		tell_progress(call, 1);
}

int register_call_run(struct register_call *call, struct op_job *job,
		      size_t first, size_t end, ktask_thread_func chunk)
{
	int error;

	job->addr = (char *)first;
	job->len = end - first;
	job->align = 1;
	job->state = call;
	error = op_run_job(job, chunk);
	if (registration_is_foreign(call->registration))
		return error;
	register_call_add(call, job->result);
	registration_sort(call->registration);
	return error;
}
