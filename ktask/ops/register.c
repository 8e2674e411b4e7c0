/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: several threads make pages, and the device is called for one piece after
 * another.
 *
 * Owns the arguments, the order of the steps, and the report about them.  register_ways.h
 * has the ways in which the device is called, registration.h the pieces.
 *
 * Cleanup goes in reverse order: end the job that makes pages ahead, unregister, free.
 * An exception that a callback throws unwinds in the same order (-fexceptions).
 */
#include <errno.h>

#include "mapping.h"
#include "register_ways.h"
#include "common/struct_size.h"

#define KNOWN_FLAGS                                         \
	(KTASK_REGISTER_PARALLEL | KTASK_REGISTER_PRESENT | \
	 KTASK_REGISTER_READ | KTASK_REGISTER_MAKES_PAGES | \
	 KTASK_REGISTER_LOCKS_MAPPINGS)

/* Not in the table of operations: it needs more than a range. */
static const struct ktask_op op_register = {
	.name = "register",
	.makes_pages = true,
};

/* The result of a call that has nothing to do. */
static void clear_result(struct ktask_result *result)
{
	const struct ktask_result nothing = KTASK_RESULT_INIT;

	struct_size_write(result, &nothing, sizeof(nothing));
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
	uint64_t cpu_ns;
	int error;

	if (registration->ctl.flags & KTASK_REGISTER_PARALLEL)
		error = register_in_parallel(call, range);
	else
		error = register_in_order(call, range, registration->start,
					  registration->end);
	if (registration_is_foreign(registration)) {
		registration_free(registration);
		return -ECANCELED;
	}
	bytes = registration->bytes;
	pieces = registration->nr_pieces;
	cpu_ns = registration->cpu_ns;
	if (error)
		registration_undo(registration);
	call->jobs.cpu_ns += registration->cpu_ns - cpu_ns;
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
