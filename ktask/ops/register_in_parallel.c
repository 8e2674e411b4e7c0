/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Several threads call the device: each chunk of a job makes the pages of its pieces,
 * unless the device does, and registers them.
 *
 * A device may accept several calls at once and still do less than with one call after
 * another.  So there is a trial first: the caller registers two pieces, then two threads
 * register some whose pages are present.  If calls at once gain nothing (calls_at_once.h),
 * the caller makes the next calls in order, while helpers make pages, until the next
 * trial.  After two such trials in a row, the next registrations by the same function do
 * so without a trial (calls_history.h): helpers have the lowest priority, and the caller
 * must not queue behind them for a lock of the device.
 *
 * Behaves badly if the range is short or has large units: then there is no trial.
 */
#include "calls_at_once.h"
#include "calls_history.h"
#include "register_ways.h"

/* Some 100 us of pinning what is present. */
#define MIN_CHUNK_BYTES (8 * MIB)

/* A trial is two pieces by the caller, and then jobs of two threads, until enough calls
 * had another beside them. */
#define TRIAL_THREADS 2
#define TRIAL_BYTES (2 * MIB) /* of each of the caller's pieces */
/* The calls of a job of two threads would take TRIAL_JOB_NS alone, unless units are larger
 * or that is more than TRIAL_JOB_PIECES times TRIAL_BYTES.  A helper begins in a part of
 * that time. */
#define TRIAL_JOB_NS 2500000
#define TRIAL_JOB_PIECES 16
#define TRIAL_JOBS 4
#define TRIAL_PIECES (2 + TRIAL_JOB_PIECES)
/* Larger units would make a trial long. */
#define TRIAL_UNIT_MAX (16 * MIB)
/* The fewest pieces of a range that has a trial, which then costs two threads at most 3 %
 * of the time. */
#define TRIAL_LEAST 64
/* After the first trial without a gain so many times its bytes are registered in order;
 * after each further one twice as many.  Trials then take 3 % at most. */
#define TRIAL_STRETCH 32

/* If the device can make the pages, let it: making them first costs a tenth. */
static int add_piece(struct ktask_registration *registration, uintptr_t pos,
		     uintptr_t end, unsigned flags, uintptr_t *bad)
{
	bool present = registration->ctl.flags & KTASK_REGISTER_PRESENT;
	bool makes = registration->ctl.flags & KTASK_REGISTER_MAKES_PAGES;
	int error = 0, error_made = 0;

	if (!present && !makes)
		error = presence_make(pos, end, flags, bad);
	if (!error)
		error = registration_add(registration, pos, end);
	/* The device does not tell which page could not be made. */
	if (error && makes && !present &&
	    !registration_is_foreign(registration))
		error_made = presence_make(pos, end, flags, bad);
	return error_made ? error_made : error;
}

static int register_piece(struct register_call *call, uintptr_t pos,
			  uintptr_t end, unsigned flags)
{
	struct ktask_registration *registration = call->registration;
	uintptr_t bad = pos;
	int error = add_piece(registration, pos, end, flags, &bad);

	if (error && !registration_is_foreign(registration))
		registration_note_failure(registration, bad, error);
	return error;
}

/* Positions are units, counted from the base. */
static int register_chunk(void *first, void *last, void *arg)
{
	const struct op_job *job = arg;
	struct register_call *call = job->state;
	struct ktask_registration *registration = call->registration;
	size_t unit = registration->limits.unit_bytes;
	uintptr_t pos = registration->base + (uintptr_t)first * unit;
	uintptr_t end = registration->base + (uintptr_t)last * unit, next;
	int error = 0;

	if (pos < registration->start)
		pos = registration->start;
	if (end > registration->end || end < pos)
		end = registration->end;
	for (; pos < end && !error; pos = next) {
		next = registration_next(registration, pos, end);
		error = register_piece(call, pos, next, job->flags);
	}
	return error;
}

static int run_job(struct register_call *call, const struct op_job *range,
		   uintptr_t start, uintptr_t end, size_t min_bytes,
		   struct ktask_result *result)
{
	const struct ktask_registration *registration = call->registration;
	size_t unit = registration->limits.unit_bytes;
	size_t bytes = end - registration->base;
	size_t first = (start - registration->base) / unit;
	struct op_job job = *range;

	job.min_chunk = unit < min_bytes ? min_bytes / unit : 1;
	job.result = result;
	return register_call_run(call, &job, first,
				 bytes / unit + !!(bytes % unit),
				 register_chunk);
}

static int register_rest(struct register_call *call, const struct op_job *range,
			 uintptr_t start)
{
	struct ktask_result result = KTASK_RESULT_INIT;

	return run_job(call, range, start, call->registration->end,
		       MIN_CHUNK_BYTES, &result);
}

/* ---- trials ---- */

struct trial {
	size_t piece_bytes;
	size_t stretch_bytes; /* registered in order if nothing is gained */
	bool gains;
};

static void init_trial(struct trial *trial,
		       const struct ktask_registration *registration)
{
	const struct piece_limits *limits = &registration->limits;
	size_t bytes = TRIAL_BYTES;

	if (limits->max_bytes && limits->max_bytes < bytes)
		bytes = limits->max_bytes;
	bytes -= bytes % limits->unit_bytes;
	trial->piece_bytes = bytes ? bytes : limits->unit_bytes;
	trial->stretch_bytes =
		TRIAL_STRETCH * TRIAL_PIECES * trial->piece_bytes;
	trial->gains = true;
}

static bool is_worth_trying(const struct trial *trial,
			    const struct register_call *call, uintptr_t pos)
{
	const struct ktask_registration *registration = call->registration;

	return call->opts.max_threads != 1 &&
	       registration->limits.unit_bytes <= TRIAL_UNIT_MAX &&
	       (registration->end - pos) / TRIAL_LEAST >= trial->piece_bytes;
}

/* Where @bytes behind the unit of @pos end. */
static uintptr_t end_behind(const struct ktask_registration *registration,
			    uintptr_t pos, size_t bytes)
{
	size_t before =
		(pos - registration->base) % registration->limits.unit_bytes;

	if (bytes >= registration->end - pos + before)
		return registration->end;
	return pos - before + bytes;
}

/* What is measured are the calls, not the pages. */
static int make_pages(struct register_call *call, const struct op_job *range,
		      uintptr_t start, uintptr_t end)
{
	struct ktask_registration *registration = call->registration;
	struct op_job part = *range;
	uintptr_t bad;
	int error;

	if (registration->ctl.flags & KTASK_REGISTER_PRESENT)
		return 0;
	part.addr = (char *)start;
	part.len = end - start;
	presence_begin(&call->presence, &part, registration->base,
		       registration->limits.unit_bytes);
	error = presence_reach(&call->presence, end - 1, &bad);
	if (error && bad)
		registration_note_failure(registration, bad, error);
	presence_end(&call->presence);
	register_call_add(call, &call->presence.sum);
	return error;
}

static int try_alone(struct register_call *call, const struct op_job *range,
		     uintptr_t start, uintptr_t end)
{
	struct ktask_registration *registration = call->registration;
	uint64_t before_ns = registration->cpu_ns;
	int error = register_piece(call, start, end, range->flags);

	call->jobs.cpu_ns += registration->cpu_ns - before_ns;
	return error ? error : register_call_stop(call);
}

/* The first one may find caches and the device cold. */
static int try_two_alone(struct register_call *call, const struct op_job *range,
			 const struct trial *trial, uintptr_t *pos)
{
	const struct ktask_registration *registration = call->registration;
	uintptr_t end = end_behind(registration, *pos, 2 * trial->piece_bytes);
	int error = make_pages(call, range, *pos, end);

	for (int i = 0; i < 2 && !error; i++) {
		end = end_behind(registration, *pos, trial->piece_bytes);
		error = try_alone(call, range, *pos, end);
		*pos = end;
	}
	return error;
}

/* Bytes that take as long as said above: whole units, and two at least. */
static size_t job_bytes(const struct trial *trial, size_t unit, double alone_ns)
{
	size_t bytes = TRIAL_JOB_PIECES * trial->piece_bytes;

	if ((double)bytes * alone_ns > TRIAL_JOB_NS)
		bytes = (size_t)(TRIAL_JOB_NS / alone_ns);
	if (bytes < trial->piece_bytes)
		bytes = trial->piece_bytes;
	bytes -= bytes % unit;
	return bytes > 2 * unit ? bytes : 2 * unit;
}

static size_t job_piece_bytes(size_t bytes, size_t unit)
{
	bytes /= TRIAL_JOB_PIECES;
	bytes -= bytes % unit;
	return bytes ? bytes : unit;
}

static int try_at_once(struct register_call *call, const struct op_job *range,
		       size_t bytes, uintptr_t *pos)
{
	struct ktask_registration *registration = call->registration;
	struct ktask_result result = KTASK_RESULT_INIT;
	uintptr_t start = *pos, end = end_behind(registration, start, bytes);
	size_t piece_bytes =
		job_piece_bytes(bytes, registration->limits.unit_bytes);
	size_t max_bytes = registration->limits.max_bytes;
	struct ktask_opts opts = *range->opts;
	struct op_job job = *range;
	int error = make_pages(call, range, start, end);

	*pos = end;
	if (error)
		return error;
	opts.max_threads = TRIAL_THREADS;
	job.opts = &opts;
	registration->limits.max_bytes = piece_bytes;
	error = run_job(call, &job, start, end, piece_bytes, &result);
	registration->limits.max_bytes = max_bytes;
	return error;
}

/* Registers what it tries.  Sets @pos to what is next. */
static int run_trial(struct register_call *call, const struct op_job *range,
		     struct trial *trial, uintptr_t *pos)
{
	struct ktask_registration *registration = call->registration;
	struct calls_seen seen = { 0 };
	int error;

	registration->seen = &seen;
	error = try_two_alone(call, range, trial, pos);
	for (int i = 0; i < TRIAL_JOBS && !calls_seen_enough(&seen) && !error;
	     i++)
		error = try_at_once(call, range,
				    job_bytes(trial,
					      registration->limits.unit_bytes,
					      seen.alone_ns),
				    pos);
	registration->seen = NULL;
	trial->gains = calls_at_once_gain(&seen);
	if (calls_seen_enough(&seen))
		calls_history_note(registration->ctl.register_func,
				   trial->gains);
	/* Calls alone take less than these did. */
	if (!trial->gains)
		registration->sec_per_byte = 0;
	return error;
}

/* Up to where calls are made in order behind a trial: to the end, unless another trial
 * fits in behind. */
static uintptr_t end_of_stretch(struct trial *trial,
				const struct register_call *call, uintptr_t pos)
{
	uintptr_t end =
		end_behind(call->registration, pos, trial->stretch_bytes);

	trial->stretch_bytes *= 2;
	return is_worth_trying(trial, call, end) ? end
						 : call->registration->end;
}

int register_in_parallel(struct register_call *call, const struct op_job *range)
{
	struct ktask_registration *registration = call->registration;
	uintptr_t pos = registration->start, end;
	struct trial trial;
	int error = 0;

	init_trial(&trial, registration);
	if (is_worth_trying(&trial, call, pos) &&
	    calls_history_believes(registration->ctl.register_func))
		return register_in_order(call, range, pos, registration->end);
	while (!error && is_worth_trying(&trial, call, pos)) {
		error = run_trial(call, range, &trial, &pos);
		if (error || trial.gains)
			break;
		end = end_of_stretch(&trial, call, pos);
		error = register_in_order(call, range, pos, end);
		pos = end;
	}
	return error || pos == registration->end
		       ? error
		       : register_rest(call, range, pos);
}
