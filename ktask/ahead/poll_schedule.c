/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See poll_schedule.h. */
#include "ahead/poll_schedule.h"

/* The longest time between two polls of a mapping, and how that time grows. */
#define POLL_MOST_NS 50000000
#define POLL_GROWTH 4
/* The time between two scans of all pages: at least this, and a multiple of a scan. */
#define SCAN_LEAST_NS 500000
#define SCAN_MOST_NS 200000000
#define SCAN_TIMES 50
/* Before the next one, where no CPU was idle for what a scan finds. */
#define SCAN_LATER_NS 20000000
/* The least time between two polls while a window is made, because a poll may take the CPU
 * of the helper that makes it.  The end of the window wakes the watcher anyway. */
#define WORKING_NS 4000000
/* After so many windows in a row without a helper none is requested for a while: the first
 * pause, and the longest. */
#define UNHELPED 4
#define PAUSE_LEAST_NS 2000000
#define PAUSE_MOST_NS 100000000

/* Pages are read so often while the program keeps all CPUs busy, so that it is seen when
 * all are touched. */
#define READ_NS 1000000000

/* While the program makes the huge pages of a window itself: 4 to 16 MiB. */
#define ADVISED_NS 500000

void poll_schedule_init(struct poll_schedule *schedule, uint64_t now_ns)
{
	*schedule = (struct poll_schedule){
		.due_ns = now_ns,
		.scan_due_ns = now_ns,
		.delay_ns = POLL_LEAST_NS,
		.scan_delay_ns = SCAN_LEAST_NS,
	};
}

void poll_schedule_scanned(struct poll_schedule *schedule, bool found,
			   uint64_t now_ns, uint64_t took_ns)
{
	if (found)
		schedule->scan_delay_ns = SCAN_LEAST_NS;
	else if (schedule->scan_delay_ns < SCAN_MOST_NS)
		schedule->scan_delay_ns += schedule->scan_delay_ns / 2;
	if (schedule->scan_delay_ns < SCAN_TIMES * took_ns)
		schedule->scan_delay_ns = SCAN_TIMES * took_ns;
	schedule->scan_due_ns = now_ns + schedule->scan_delay_ns;
}

void poll_schedule_postpone_scan(struct poll_schedule *schedule,
				 uint64_t now_ns)
{
	schedule->scan_due_ns = now_ns + SCAN_LATER_NS;
}

void poll_schedule_helped(struct poll_schedule *schedule, bool helped)
{
	schedule->nr_unhelped = helped ? 0 : schedule->nr_unhelped + 1;
	if (!helped)
		return;
	schedule->pause_ns = schedule->least_ns = 0;
	schedule->nr_advised = 0;
}

void poll_schedule_advised(struct poll_schedule *schedule)
{
	schedule->nr_unhelped = 0;
	schedule->pause_ns = 0;
	if (schedule->nr_advised++)
		schedule->least_ns = ADVISED_NS;
}

static void plan_pause(struct poll_schedule *schedule, uint64_t now_ns)
{
	/* The next one that gets no helper is followed by a pause at once. */
	schedule->nr_unhelped = UNHELPED - 1;
	schedule->pause_ns =
		schedule->pause_ns ? 2 * schedule->pause_ns : PAUSE_LEAST_NS;
	if (schedule->pause_ns > PAUSE_MOST_NS)
		schedule->pause_ns = PAUSE_MOST_NS;
	schedule->due_ns = now_ns + schedule->pause_ns;
}

void poll_schedule_next(struct poll_schedule *schedule, bool moved,
			bool working, uint64_t now_ns)
{
	if (moved)
		schedule->delay_ns = POLL_LEAST_NS;
	else if (schedule->delay_ns < POLL_MOST_NS)
		schedule->delay_ns += schedule->delay_ns / POLL_GROWTH;
	schedule->due_ns = now_ns + (schedule->delay_ns > schedule->least_ns
					     ? schedule->delay_ns
					     : schedule->least_ns);
	if (schedule->nr_unhelped >= UNHELPED)
		plan_pause(schedule, now_ns);
	else if (working && schedule->delay_ns < WORKING_NS)
		schedule->due_ns = now_ns + WORKING_NS;
}

bool poll_schedule_may_leave(const struct poll_schedule *schedule,
			     uint64_t now_ns)
{
	return schedule->pause_ns && now_ns - schedule->read_ns < READ_NS;
}

void poll_schedule_leave(struct poll_schedule *schedule, uint64_t now_ns)
{
	plan_pause(schedule, now_ns);
}

void poll_schedule_read(struct poll_schedule *schedule, uint64_t now_ns)
{
	schedule->read_ns = now_ns;
}

bool poll_schedule_rests(const struct poll_schedule *schedule)
{
	return schedule->delay_ns >= POLL_MOST_NS;
}
