/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: several threads make pages, and the device is called for one piece after
 * another.
 *
 * If the device takes one call at a time, the caller makes the calls in order while
 * helpers make the pages ahead (presence.h).  If it takes several, each chunk of one job
 * makes the pages of its pieces, unless the device does, and registers them.
 *
 * Owns the order of the steps, and what is reported about them.  The pieces are
 * registration.h's.
 *
 * Cleanup goes in reverse order: end the job that makes pages ahead, unregister, free.
 * An exception that a callback throws unwinds in the same order (-fexceptions).
 */
#include <errno.h>

#include "mapping.h"
#include "register_call.h"
#include "common/struct_size.h"

#define KNOWN_FLAGS                                         \
	(KTASK_REGISTER_PARALLEL | KTASK_REGISTER_PRESENT | \
	 KTASK_REGISTER_READ | KTASK_REGISTER_MAKES_PAGES)

/* Some 100 us of pinning what is present. */
#define MIN_CHUNK_BYTES (8 * MIB)

/* Not in the table of operations: it needs more than a range. */
static const struct ktask_op op_register = {
	.name = "register",
	.makes_pages = true,
};

/* Of a call that has nothing to do. */
static void clear_result(struct ktask_result *result)
{
	const struct ktask_result nothing = KTASK_RESULT_INIT;

	struct_size_write(result, &nothing, sizeof(nothing));
}

static int register_in_order(struct register_call *call)
{
	struct ktask_registration *registration = call->registration;
	struct presence *presence = &call->presence;
	uintptr_t pos = registration->start, end, bad;
	int error = 0;

	while (pos < registration->end) {
		error = presence_reach(presence, pos, &bad);
		if (error && bad)
			registration_note_failure(registration, bad, error);
		if (!error)
			error = register_call_stop(call);
		if (error)
			break;
		end = registration_next(registration, pos, presence->ready);
		error = registration_add(registration, pos, end);
		if (registration_is_foreign(registration))
			return error;
		if (error) {
			registration_note_failure(registration, pos, error);
			break;
		}
		pos = end;
	}
	return error;
}

static int run_in_order(struct register_call *call, const struct op_job *range)
{
	struct ktask_registration *registration = call->registration;
	int error;

	presence_begin(&call->presence, range, registration->base,
		       registration->limits.unit_bytes);
	if (registration->ctl.flags & KTASK_REGISTER_PRESENT)
		call->presence.ready = call->presence.next = registration->end;
	error = register_in_order(call);
	presence_end(&call->presence);
	register_call_add(call, &call->presence.sum);
	/* As at the end of a job, whatever it says. */
	if (!error)
		register_call_tell(call);
	return error;
}

/* To make pages first is to go over them twice, which costs a tenth. */
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
	/* Which page it was, the device does not tell. */
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

static int run_in_parallel(struct register_call *call,
			   const struct op_job *range)
{
	const struct ktask_registration *registration = call->registration;
	size_t bytes = registration->end - registration->base;
	size_t unit = registration->limits.unit_bytes;
	struct op_job job = *range;

	job.min_chunk = unit < MIN_CHUNK_BYTES ? MIN_CHUNK_BYTES / unit : 1;
	return register_call_run(call, &job, bytes / unit + !!(bytes % unit),
				 register_chunk);
}

/* Also on the way of an exception. */
static void take_back(struct register_call *call)
{
	struct ktask_registration *registration = call->registration;

	presence_end(&call->presence);
	registration_undo(registration);
	registration_free(registration);
}

static void clean_up(struct register_call *call)
{
	if (!call->unfinished)
		return;
	take_back(call);
	register_call_end(call);
}

static int register_range(struct ktask_registration **out,
			  struct register_call *call,
			  const struct op_job *range)
{
	struct ktask_registration *registration = call->registration;
	size_t bytes, pieces;
	int error;

	if (registration->ctl.flags & KTASK_REGISTER_PARALLEL)
		error = run_in_parallel(call, range);
	else
		error = run_in_order(call, range);
	if (registration_is_foreign(registration)) {
		registration_free(registration);
		return -ECANCELED;
	}
	bytes = registration->bytes;
	pieces = registration->nr_pieces;
	if (error)
		registration_undo(registration);
	register_call_result(call, error, bytes, pieces);
	if (error)
		registration_free(registration);
	else
		*out = registration;
	return error;
}

static int check_ctl(const struct ktask_register_ctl *ctl, const void *addr,
		     size_t len)
{
	for (unsigned i = 0; i < 4; i++)
		if (ctl->reserved[i])
			return -EINVAL;
	if (!ctl->register_func || !ctl->unregister_func || !addr)
		return -EINVAL;
	if (ctl->flags & ~KNOWN_FLAGS)
		return -EINVAL;
	/* Room to round up. */
	return len > SIZE_MAX - 4096 - (uintptr_t)addr ? -EINVAL : 0;
}

static int read_ctl(struct ktask_register_ctl *own,
		    const struct ktask_register_ctl *ctl)
{
	if (!ctl)
		return -EINVAL;
	return struct_size_read(
		own, sizeof(*own), ctl,
		STRUCT_SIZE_TO(struct ktask_register_ctl, func_arg));
}

/* The largest page of the range, where the program does not say what a unit is. */
static void choose_unit(const struct op_job *range, size_t unit_bytes,
			size_t *unit, uintptr_t *base)
{
	struct op_job probe = *range;

	*unit = unit_bytes;
	*base = (uintptr_t)range->addr;
	if (unit_bytes)
		return;
	probe.min_chunk = op_populate.min_chunk;
	mapping_align_range(&probe);
	*unit = probe.align;
	*base &= ~(uintptr_t)(probe.align - 1);
}

static int run_register(struct ktask_registration **out,
			struct register_call *call, void *addr, size_t len,
			struct ktask_register_ctl *ctl)
{
	__attribute__((cleanup(clean_up))) struct register_call own = *call;
	struct op_job range = {
		.op = &op_register,
		.addr = addr,
		.len = len,
		.flags = ctl->flags & KTASK_REGISTER_READ ? KTASK_POPULATE_READ
							  : 0,
		.opts = &own.job_opts,
		.watch = &own.watch,
	};
	struct ktask_registration *registration;
	size_t unit_bytes;
	uintptr_t base;
	int error;

	choose_unit(&range, ctl->unit_bytes, &unit_bytes, &base);
	/* It would be one chunk, and a single thread would make its pages. */
	if ((uintptr_t)addr + len - base <= unit_bytes)
		ctl->flags &= ~KTASK_REGISTER_PARALLEL;
	registration =
		registration_new((uintptr_t)addr, len, ctl, unit_bytes, base);
	if (!registration)
		return -ENOMEM;
	register_call_begin(&own, registration);
	own.registers = true;
	own.total_bytes = len;
	own.unfinished = true;
	error = register_range(out, &own, &range);
	own.unfinished = false;
	register_call_end(&own);
	return error;
}

int ktask_register(struct ktask_registration **registration, void *addr,
		   size_t len, const struct ktask_register_ctl *ctl,
		   const struct ktask_opts *opts)
{
	struct ktask_register_ctl own;
	struct register_call call;
	int saved_errno = errno;
	int error;

	if (!registration)
		return -EINVAL;
	*registration = NULL;
	error = read_ctl(&own, ctl);
	if (!error)
		error = register_call_read(&call, opts);
	if (!error)
		error = check_ctl(&own, addr, len);
	if (!error && len)
		error = run_register(registration, &call, addr, len, &own);
	else if (!error && call.opts.result)
		clear_result(call.opts.result);
	errno = saved_errno;
	return error;
}
