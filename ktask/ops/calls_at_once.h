/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Does it gain anything to call a device by two threads at once?  Pure: knows neither
 * clock nor device.
 *
 * A call beside another that needs twice the CPU time of one alone gains nothing: the
 * device has a lock that threads spin for, or memory that all write to.  Only calls that
 * had another beside them for nearly all their time are compared, with calls that had
 * none: a helper comes late.  CPU time is compared, since a busy machine makes calls
 * longer.  Of those alone the least counts, since interrupts and cold caches only add to
 * it; of the others the mean, since how much they hinder one another varies.
 *
 * Behaves badly with a device whose calls wait, without a CPU, for one another: threads
 * then seem to gain something.  They do no harm, since one call follows another.
 */
#ifndef OPS_CALLS_AT_ONCE_H
#define OPS_CALLS_AT_ONCE_H

#include <stdbool.h>
#include <stdint.h>

/** What one call took. */
struct call_cost {
	uint64_t bytes;
	uint64_t cpu_ns;
	uint64_t wall_ns;
	uint64_t beside_ns; /* of that, beside another call */
};

/** What was seen of several; begins as zeroes. */
struct calls_seen {
	double alone_ns; /* CPU time of a byte, the least; 0: none was seen */
	uint64_t beside_ns; /* CPU time of all that had others beside them */
	uint64_t beside_bytes;
	unsigned nr_beside;
};

/** calls_seen_add - one call more; ignored if it had another beside it for a part */
void calls_seen_add(struct calls_seen *seen, const struct call_cost *call);

/** calls_seen_enough - calls_at_once_gain() can tell for sure */
bool calls_seen_enough(const struct calls_seen *seen);

/**
 * calls_at_once_gain - do two threads get more done than one?
 *
 * Return: false only if it was seen that they do not.
 */
bool calls_at_once_gain(const struct calls_seen *seen);

#endif /* OPS_CALLS_AT_ONCE_H */
