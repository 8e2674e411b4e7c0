/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The watched job of work.h.
 */
#include "ktest.h"
#include "port.h"
#include "work.h"

#include <string.h>

static void count_fault(struct work *work)
{
	kt_add(&work->faults, 1);
}

/* Atomic, so that a unit given to two threads is a fault and not a race. */
static bool change_unit(uint8_t *unit, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(unit, &from, to, 0, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static int do_chunk(void *start, void *end, void *arg)
{
	struct work *work = arg;
	uint64_t from = (uint64_t)((uint8_t *)start - work->units);
	uint64_t to = (uint64_t)((uint8_t *)end - work->units);
	int error = 0;

	if (from >= to || to > work->nr_units) {
		count_fault(work);
		return 0;
	}
	port_now_ns += (to - from) * work->unit_ns;
	if (work->chunk)
		error = work->chunk(work, from, to);
	for (uint64_t i = from; i < to; i++)
		if (!change_unit(&work->units[i], WORK_FRESH,
				 error ? WORK_FAILED : WORK_DONE))
			count_fault(work);
	return error;
}

static void undo_chunk(void *start, void *end, void *arg)
{
	struct work *work = arg;
	uint64_t from = (uint64_t)((uint8_t *)start - work->units);
	uint64_t to = (uint64_t)((uint8_t *)end - work->units);

	if (from >= to || to > work->nr_units || from < work->undo_at) {
		count_fault(work);
		return;
	}
	work->undo_calls++;
	work->undone += to - from;
	work->undo_at = to;
	for (uint64_t i = from; i < to; i++)
		if (!change_unit(&work->units[i], WORK_DONE, WORK_UNDONE))
			count_fault(work);
}

void work_init(struct work *work, unsigned nr_ranges, const uint64_t *units)
{
	uint64_t at = 0;

	memset(work, 0, sizeof(*work));
	for (unsigned i = 0; i < nr_ranges; i++)
		work->nr_units += units[i];
	work->units = calloc(work->nr_units + 1, 1);
	assert_non_null(work->units);
	for (unsigned i = 0; i < nr_ranges; i++) {
		work->ranges[i].start = work->units + at;
		work->ranges[i].units = units[i];
		work->ranges[i].node = (int)i;
		at += units[i];
	}
	work->job.func = do_chunk;
	work->job.undo = undo_chunk;
	work->job.arg = work;
	work->job.split.min_chunk = 1;
	work->job.split.align = 1;
	work->job.split.target_ns = 1000000;
	work->job.ranges = work->ranges;
	work->job.nr_ranges = nr_ranges;
	work->unit_ns = 1000;
}

void work_begin(struct work *work, unsigned nr_workers)
{
	assert_true(nr_workers <= WORK_WORKERS);
	assert_int_equal(kt_job_check(&work->job), 0);
	kt_job_begin(&work->job);
	kt_store(&work->job.threads, nr_workers);
	work->nr_workers = nr_workers;
	for (unsigned i = 0; i < nr_workers; i++)
		kt_worker_begin(&work->workers[i], &work->job,
				(int)(i % KT_MAX(work->job.nr_ranges, 1)),
				i / KT_MAX(work->job.nr_ranges, 1));
}

static const struct kt_worker *worker_at(void *host, unsigned index)
{
	struct work *work = host;

	return &work->workers[index];
}

void work_undo(struct work *work)
{
	kt_undo(&work->job, worker_at, work, work->nr_workers);
}

const struct kt_worker *work_lowest(struct work *work)
{
	return kt_undo_lowest(worker_at, work, work->nr_workers);
}

void work_check_done(const struct work *work)
{
	assert_int_equal(work->faults, 0);
	for (uint64_t i = 0; i < work->nr_units; i++)
		assert_int_equal(work->units[i], WORK_DONE);
}

void work_check_undone(const struct work *work)
{
	assert_int_equal(work->faults, 0);
	for (uint64_t i = 0; i < work->nr_units; i++)
		assert_int_not_equal(work->units[i], WORK_DONE);
}

void work_free(struct work *work)
{
	free(work->units);
	work->units = NULL;
}

bool work_leave(struct kt_worker *worker, uint64_t now_ns)
{
	return true;
}
