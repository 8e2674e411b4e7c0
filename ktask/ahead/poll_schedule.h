/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When to poll a mapping next.  While its frontiers move it is polled every 0.1 ms.  While
 * nothing moves it is polled less and less often, down to every 50 ms.  Windows that got
 * no helper are followed by a pause.
 *
 * Knows no clock: the caller says what time it is.  Not thread-safe: the watcher's.
 */
#ifndef AHEAD_POLL_SCHEDULE_H
#define AHEAD_POLL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* The least time between two polls. */
#define POLL_LEAST_NS 100000

struct poll_schedule {
	uint64_t due_ns; /* the next poll */
	uint64_t scan_due_ns; /* the next scan of all of its pages */
	uint64_t read_ns; /* when pages were read last */
	uint64_t delay_ns, scan_delay_ns;
	uint64_t least_ns; /* between two polls, now */
	uint64_t
		pause_ns; /* before the next poll, where there were no helpers */
	unsigned
		nr_unhelped; /* windows without a helper, one after the other */
	unsigned nr_advised; /* the same, of advised windows */
};

/* poll_schedule_init - poll and scan at once */
void poll_schedule_init(struct poll_schedule *schedule, uint64_t now_ns);

/* poll_schedule_scanned - @found: new frontiers; @took_ns: how long the scan took */
void poll_schedule_scanned(struct poll_schedule *schedule, bool found,
			   uint64_t now_ns, uint64_t took_ns);

/* poll_schedule_postpone_scan - a scan was due, but no window could be made now */
void poll_schedule_postpone_scan(struct poll_schedule *schedule,
				 uint64_t now_ns);

/* poll_schedule_helped - whether a helper had a CPU for a whole window */
void poll_schedule_helped(struct poll_schedule *schedule, bool helped);

/* poll_schedule_advised - huge pages were advised for a window that no helper makes.
 * Polls take CPU time from the program, so they become rarer; but not at the first such
 * window, because the CPUs may have been busy for a moment only. */
void poll_schedule_advised(struct poll_schedule *schedule);

/**
 * poll_schedule_next - after a poll: set when the next one is due
 * @moved: a frontier has, or was found
 * @working: helpers make a window, whose end wakes the watcher
 */
void poll_schedule_next(struct poll_schedule *schedule, bool moved,
			bool working, uint64_t now_ns);

/**
 * poll_schedule_may_leave - at a poll: whether no page need be read if no window could get
 * a helper now
 *
 * Reading the pages that were touched in a pause takes up to 0.3 ms, in which a thread of
 * the program has no CPU.  The answer costs nothing: ask this first, and then whether a
 * window could get a helper.
 */
bool poll_schedule_may_leave(const struct poll_schedule *schedule,
			     uint64_t now_ns);

/* poll_schedule_leave - no page was read: pause again, for longer.  What is known of how
 * long nothing has moved stays. */
void poll_schedule_leave(struct poll_schedule *schedule, uint64_t now_ns);

/* poll_schedule_read - a poll reads pages */
void poll_schedule_read(struct poll_schedule *schedule, uint64_t now_ns);

/* poll_schedule_rests - nothing has moved for a quarter of a second */
bool poll_schedule_rests(const struct poll_schedule *schedule);

#endif /* AHEAD_POLL_SCHEDULE_H */
