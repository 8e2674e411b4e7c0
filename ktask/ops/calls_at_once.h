/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Do two threads gain anything by calling a device at the same time?  Arithmetic only:
 * knows neither clock nor device.
 *
 * They gain nothing if a call beside another needs twice the CPU time of a call alone.
 * Then the device has a lock for which threads spin, or memory to which all of them write.
 * Two kinds of calls are compared: those alone, and those with another call beside them
 * for nearly all of their time.  A helper begins late, so other calls are ignored.  CPU
 * time is compared, because a busy machine makes calls longer.  For calls alone the
 * minimum counts, because interrupts and cold caches only add to it.  For the others the
 * mean counts, because they slow each other down more or less.
 *
 * Behaves badly with a device whose calls sleep while they wait for each other: then two
 * threads seem to gain something.  That does no harm, as calls still follow one another.
 */
#ifndef OPS_CALLS_AT_ONCE_H
#define OPS_CALLS_AT_ONCE_H

#include <stdbool.h>
#include <stdint.h>

/** The cost of one call. */
struct call_cost {
	uint64_t bytes;
	uint64_t cpu_ns;
	uint64_t wall_ns;
	uint64_t beside_ns; /* the part of wall_ns beside another call */
};

/** Sums over several calls; begins as zeroes. */
struct calls_seen {
	double alone_ns; /* least CPU time of a byte; 0: no call alone was seen */
	uint64_t beside_ns; /* CPU time of calls with others beside them */
	uint64_t beside_bytes;
	unsigned nr_beside;
};

/** calls_seen_add - add a call; ignored if it had another beside it part of its time */
void calls_seen_add(struct calls_seen *seen, const struct call_cost *call);

/** calls_seen_enough - were enough calls seen for calls_at_once_gain()? */
bool calls_seen_enough(const struct calls_seen *seen);

/**
 * calls_at_once_gain - do two threads get more done than one?
 *
 * Return: false only if the calls that were seen show that they do not.
 */
bool calls_at_once_gain(const struct calls_seen *seen);

#endif /* OPS_CALLS_AT_ONCE_H */
