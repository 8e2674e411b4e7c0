/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * unregister: the caller unregisters the pieces of a registration, the last one first.
 * If the device takes several calls at once, several threads do.
 */
#include <errno.h>

#include "register_call.h"
#include "common/struct_size.h"

/* Not in the table of operations: it has no range. */
static const struct ktask_op op_unregister = {
	.name = "unregister",
};

/* The first is kept, where registering keeps the lowest: nothing ends here, so each piece
 * may fail, and what made the first one fail may explain the others. */
static void note_failure(struct ktask_registration *registration, uintptr_t pos,
			 int error)
{
	pthread_mutex_lock(&registration->lock);
	if (!registration->fail_pos) {
		registration->fail_pos = pos;
		registration->fail_error = error;
	}
	pthread_mutex_unlock(&registration->lock);
}

/* Positions count pieces from the last one on. */
static int unregister_chunk(void *first, void *last, void *arg)
{
	const struct op_job *job = arg;
	struct register_call *call = job->state;
	struct ktask_registration *registration = call->registration;

	for (uintptr_t i = (uintptr_t)first; i < (uintptr_t)last; i++) {
		size_t index = registration->nr_pieces - 1 - i;
		struct piece *piece = &registration->pieces[index];
		int error = registration_take_back(registration, index);

		if (registration_is_foreign(registration))
			return error;
		if (error)
			note_failure(registration, piece->start, error);
		/* Gone: see forget_gone(). */
		piece->end = piece->start;
	}
	return 0;
}

static void forget_gone(struct ktask_registration *registration)
{
	size_t kept = 0;

	for (size_t i = 0; i < registration->nr_pieces; i++)
		if (registration->pieces[i].end !=
		    registration->pieces[i].start)
			registration->pieces[kept++] = registration->pieces[i];
	registration->nr_pieces = kept;
}

static int unregister_in_parallel(struct register_call *call)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct op_job job = {
		.op = &op_unregister,
		.min_chunk = 1,
		.opts = &call->job_opts,
		.watch = &call->watch,
		.result = &result,
	};
	int error = register_call_run(
		call, &job, 0, call->registration->nr_pieces, unregister_chunk);

	forget_gone(call->registration);
	/* Helpers may have unregistered the last pieces after the caller had to stop. */
	return call->registration->nr_pieces ? error : 0;
}

static int unregister_in_order(struct register_call *call)
{
	struct ktask_registration *registration = call->registration;
	int stop = 0;

	while (registration->nr_pieces && !stop) {
		size_t last = registration->nr_pieces - 1;
		uintptr_t pos = registration->pieces[last].start;
		int error = registration_take_last(registration);

		if (registration_is_foreign(registration))
			return error;
		if (error)
			note_failure(registration, pos, error);
		stop = register_call_stop(call);
	}
	call->jobs.cpu_ns += registration->cpu_ns;
	return registration->nr_pieces ? stop : 0;
}

static int unregister_all(struct register_call *call)
{
	struct ktask_registration *registration = call->registration;
	size_t nr_pieces = registration->nr_pieces;
	int error;

	registration->fail_pos = 0;
	registration->fail_error = 0;
	registration->cpu_ns = 0;
	if (registration->ctl.flags & KTASK_REGISTER_PARALLEL)
		error = unregister_in_parallel(call);
	else
		error = unregister_in_order(call);
	if (registration_is_foreign(registration))
		return -ECANCELED;
	if (!error)
		error = registration->fail_error;
	register_call_result(call, error,
			     call->before_bytes - registration->bytes,
			     nr_pieces - registration->nr_pieces);
	return error;
}

static int run_unregister(struct ktask_registration **registration,
			  struct register_call *call)
{
	int error = 0;

	register_call_begin(call, *registration);
	call->before_bytes = (*registration)->bytes;
	call->total_bytes = call->before_bytes;
	if (!registration_is_foreign(*registration))
		error = unregister_all(call);
	if (!(*registration)->nr_pieces ||
	    registration_is_foreign(*registration)) {
		registration_free(*registration);
		*registration = NULL;
	}
	register_call_end(call);
	return error;
}

int ktask_unregister(struct ktask_registration **registration,
		     const struct ktask_opts *opts)
{
	struct register_call call;
	int error;

	if (!registration)
		return -EINVAL;
	error = register_call_read(&call, opts);
	return error || !*registration ? error
				       : run_unregister(registration, &call);
}

int ktask_registration_info_get(const struct ktask_registration *registration,
				struct ktask_registration_info *info)
{
	struct ktask_registration_info own = KTASK_REGISTRATION_INFO_INIT;
	int error;

	if (!registration || !info)
		return -EINVAL;
	error = struct_size_check(info->struct_size, STRUCT_SIZE_ONLY);
	if (error)
		return error;
	own.bytes = registration->bytes;
	own.pieces = registration->nr_pieces;
	own.calls_ns = registration->calls_ns;
	own.longest_ns = registration->longest_ns;
	struct_size_write(info, &own, sizeof(own));
	return 0;
}

int ktask_registration_piece(const struct ktask_registration *registration,
			     size_t index, void **start, void **end)
{
	if (!registration || !start || !end)
		return -EINVAL;
	if (index >= registration->nr_pieces)
		return -ENOENT;
	*start = (void *)registration->pieces[index].start;
	*end = (void *)registration->pieces[index].end;
	return 0;
}
