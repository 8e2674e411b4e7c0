/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of a job, its ranges and its workers is used again for the next job:
 * whatever stands there, the next one does and counts the same.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include <string.h>

#define UNITS 40

static struct work work;

static uint64_t largest;

static int note_largest(struct work *unused, uint64_t from, uint64_t to)
{
	largest = KT_MAX(largest, to - from);
	return 0;
}

/* What a job leaves in the fields that it writes. */
static void leave_remains(void)
{
	for (unsigned i = 0; i < work.job.nr_ranges; i++) {
		struct kt_range *range = &work.ranges[i];

		range->dealt = 3;
		range->next = range->units;
		range->iter_pos = NULL;
		range->chunks = range->remote_chunks = 7;
		range->threads = 5;
	}
	work.job.threads = 9;
	work.job.error = (uint32_t)-EIO;
	work.job.cost.mean = work.job.cost.high = 1 << 30;
	memset(&work.workers[0], 0xa5, sizeof(work.workers[0]));
	work.workers[0].tick = NULL;
}

static void a_job_counts_its_own(void **state)
{
	static const uint64_t units[] = { UNITS, UNITS };
	struct kt_worker *worker = &work.workers[0];

	work_init(&work, 2, units);
	work.unit_ns = 1000;
	work.chunk = note_largest;
	leave_remains();
	work_begin(&work, 1);
	assert_int_equal(work.job.threads, 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(work.ranges[i].dealt, 0);
	assert_int_equal(worker->cost.mean, 0);
	assert_int_equal(worker->cost.high, 0);
	assert_int_equal(worker->units, 0);
	assert_int_equal(worker->largest_chunk, 0);
	assert_int_equal(worker->end_ns, 0);
	assert_int_equal(worker->error, 0);
	assert_null(worker->fail_pos);

	kt_job_work(&work.job, worker);
	assert_int_equal(kt_job_error(&work.job), 0);
	work_check_done(&work);
	assert_int_equal(worker->units, 2 * UNITS);
	assert_int_equal(worker->largest_chunk, largest);
	assert_true(largest > 1);
	assert_int_equal(worker->chunks,
			 work.ranges[0].chunks + work.ranges[1].chunks);
	assert_int_equal(work.ranges[0].remote_chunks, 0);
	assert_int_equal(work.ranges[1].remote_chunks, work.ranges[1].chunks);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(work.ranges[i].threads, 1);
	work_free(&work);
}

KTEST_MAIN(KTEST(a_job_counts_its_own))
