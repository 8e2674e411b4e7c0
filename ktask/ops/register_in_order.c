/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The caller calls the device for one piece after another, while helpers make the pages
 * ahead (presence.h).
 */
#include "register_ways.h"

/* Unless there is an exception: then nothing is made any more. */
static int add_piece(struct register_call *call, uintptr_t pos, uintptr_t next)
{
	struct ktask_registration *registration = call->registration;
	int error;

	presence_yield_lock(&call->presence, true);
	error = registration_add(registration, pos, next);
	presence_yield_lock(&call->presence, false);
	return error;
}

static int add_reached(struct register_call *call, uintptr_t pos, uintptr_t end)
{
	struct ktask_registration *registration = call->registration;
	struct presence *presence = &call->presence;
	uintptr_t next, bad;
	int error = 0;

	while (pos < end) {
		error = presence_reach(presence, pos, &bad);
		if (error && bad)
			registration_note_failure(registration, bad, error);
		if (!error)
			error = register_call_stop(call);
		if (error)
			break;
		next = registration_next(registration, pos, presence->ready);
		error = add_piece(call, pos, next);
		if (registration_is_foreign(registration))
			return error;
		if (error) {
			registration_note_failure(registration, pos, error);
			break;
		}
		pos = next;
	}
	return error;
}

int register_in_order(struct register_call *call, const struct op_job *range,
		      uintptr_t start, uintptr_t end)
{
	struct ktask_registration *registration = call->registration;
	uint64_t before_ns = registration->cpu_ns;
	struct op_job part = *range;
	int error;

	part.addr = (char *)start;
	part.len = end - start;
	presence_begin(&call->presence, &part, registration->base,
		       registration->limits.unit_bytes);
	if (registration->ctl.flags & KTASK_REGISTER_LOCKS_MAPPINGS)
		presence_may_yield(&call->presence);
	if (registration->ctl.flags & KTASK_REGISTER_PRESENT)
		call->presence.ready = call->presence.next = end;
	error = add_reached(call, start, end);
	presence_end(&call->presence);
	register_call_add(call, &call->presence.sum);
	call->jobs.cpu_ns += registration->cpu_ns - before_ns;
	/* As at the end of a job, whatever it says. */
	if (!error && end == registration->end)
		register_call_tell(call);
	return error;
}
