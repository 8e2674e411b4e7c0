/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two ways to call the device for [start, end) of a registration: one call at a time,
 * while helpers make the pages ahead; or several calls at once.
 *
 * @start and @end are multiples of a unit, except where the range itself begins or ends.
 */
#ifndef OPS_REGISTER_WAYS_H
#define OPS_REGISTER_WAYS_H

#include "register_call.h"

/**
 * register_in_order - the caller makes the calls, in ascending order
 * @range: the whole range; op, flags, opts, watch
 *
 * Return: 0, or the first error, which has been noted in the registration.
 */
int register_in_order(struct register_call *call, const struct op_job *range,
		      uintptr_t start, uintptr_t end);

/**
 * register_in_parallel - several threads make the calls, unless that is found to be
 * slower than one thread's
 *
 * Return: as above.
 */
int register_in_parallel(struct register_call *call,
			 const struct op_job *range);

#endif /* OPS_REGISTER_WAYS_H */
