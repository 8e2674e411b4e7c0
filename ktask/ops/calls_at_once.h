/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Does it gain anything to call a device by several threads at once?  Pure: knows neither
 * clock nor device.
 *
 * If the calls of several threads take longer than one thread would take for them, they
 * hinder one another: the device has a lock, or memory that all write to.  On a busy
 * machine they take longer too, so each must have used more CPU time as well.
 *
 * Behaves badly with a device whose calls wait, without a CPU, for one another: threads
 * then seem to gain something.  They do no harm, since one call follows another.
 */
#ifndef OPS_CALLS_AT_ONCE_H
#define OPS_CALLS_AT_ONCE_H

#include <stdbool.h>
#include <stdint.h>

/** What some calls took. */
struct calls_cost {
	uint64_t bytes;
	uint64_t wall_ns; /* until the last one had ended */
	uint64_t cpu_ns; /* of all together */
};

/**
 * calls_at_once_gain - do calls of several threads get more done than those of one?
 * @alone: what calls of one thread took
 * @at_once: the same of calls of @threads at once
 *
 * Return: false only if it is seen that they do not.
 */
bool calls_at_once_gain(const struct calls_cost *alone,
			const struct calls_cost *at_once, unsigned threads);

#endif /* OPS_CALLS_AT_ONCE_H */
