/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two nodes, a thread on each, a unit three times as expensive from the other node.
 * Equal threads leave each other's work alone.  Of unequal ones the faster, and
 * of equal ones the earlier, does as much of the other's as makes both end
 * together, and hardly more.
 *
 * Each thread has a clock of its own; whose is behind takes the next chunk.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include <math.h>

#define UNITS 16384u /* of a node: 131 ms */
#define UNIT_NS 8000.0
#define FAR_TIMES 3.0
#define MIN_CHUNK 32

struct thread {
	double slow; /* times as slow as UNIT_NS */
	uint64_t now_ns;
};

static struct work work;
static struct thread threads[2];
static unsigned running;
static double far_units;

static int do_units(struct work *w, uint64_t from, uint64_t to)
{
	bool far = (from >= UNITS) != (running == 1);
	double units = (double)(to - from);

	if (far)
		far_units += units;
	port_now_ns += (uint64_t)(units * UNIT_NS * threads[running].slow *
				  (far ? FAR_TIMES : 1));
	return 0;
}

static double run_job(double slow, double late_ns)
{
	static const uint64_t units[] = { UNITS, UNITS };

	threads[0] = (struct thread){ .slow = 1 };
	threads[1] = (struct thread){ slow, (uint64_t)late_ns };
	far_units = 0;
	work_init(&work, 2, units);
	work.unit_ns = 0;
	work.chunk = do_units;
	work.job.split.min_chunk = MIN_CHUNK;
	work_begin(&work, 2);
	for (unsigned i = 0; i < 2; i++)
		work.workers[i].tick = work_leave;
	for (unsigned i = 0; i < 2 * UNITS && !kt_job_idle(&work.job); i++) {
		running = threads[1].now_ns < threads[0].now_ns;
		port_now_ns = threads[running].now_ns;
		kt_job_work(&work.job, &work.workers[running]);
		threads[running].now_ns = port_now_ns;
	}
	work_check_done(&work);
	work_free(&work);
	return (double)KT_MAX(threads[0].now_ns, threads[1].now_ns);
}

/* When work could be divided down to nothing; sets the units of the second
 * node's that the first thread then does. */
static double best_end(double slow, double late_ns, double *far)
{
	double first_ns = UNITS * UNIT_NS;
	double left = (late_ns + first_ns * slow - first_ns) / UNIT_NS / slow;
	double far_rate = 1 / FAR_TIMES, rate = 1 / slow;

	*far = left * far_rate / (far_rate + rate);
	return first_ns + (left - *far) * UNIT_NS * slow;
}

static void check_far(double slow, double late_ns)
{
	double far, best = best_end(slow, late_ns, &far);

	assert_true(run_job(slow, late_ns) <= best * 1.02);
	assert_true(fabs(far_units - far) <= 0.01 * 2 * UNITS);
}

static void equal_threads_stay_at_home(void **state)
{
	uint64_t chunks, remote;

	run_job(1, 0);
	chunks = work.ranges[0].chunks + work.ranges[1].chunks;
	remote = work.ranges[0].remote_chunks + work.ranges[1].remote_chunks;
	assert_true(chunks > 200);
	assert_true(remote * 100 <= chunks);
	assert_true(far_units <= 0.01 * 2 * UNITS);
}

static void the_faster_does_what_makes_both_end_together(void **state)
{
	for (double slow = 1; slow <= 4; slow += 0.01)
		check_far(slow, 0);
}

static void the_earlier_does_what_makes_both_end_together(void **state)
{
	for (double late_ns = 0; late_ns < 60e6; late_ns += 0.3e6)
		check_far(1, late_ns);
}

KTEST_MAIN(KTEST(equal_threads_stay_at_home),
	   KTEST(the_faster_does_what_makes_both_end_together),
	   KTEST(the_earlier_does_what_makes_both_end_together))
