/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * With an iterator each chunk gets the position where it begins and the one
 * where it ends, undo gets the same ones, and each element is met once: in a
 * list, and in a table whose rows have very different numbers of entries.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/turns.h"
#include "support/work.h"

#define NR_ELEMENTS 700
#define NR_WORKERS 4

struct element {
	struct element *next;
	unsigned index;
	unsigned done, undone;
};

/* Scattered in memory: the address says nothing about the place in the list. */
static struct element list[NR_ELEMENTS];
static struct element *head;
static unsigned fail_at;
static unsigned undo_at;
static struct work work;
static uint32_t faults;

static void make_list(uint64_t *random)
{
	unsigned order[NR_ELEMENTS];

	for (unsigned i = 0; i < NR_ELEMENTS; i++) {
		unsigned j = (unsigned)ktest_random_below(random, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned i = 0; i < NR_ELEMENTS; i++) {
		struct element *element = &list[order[i]];

		*element = (struct element){ NULL, i, 0, 0 };
		if (i + 1 < NR_ELEMENTS)
			element->next = &list[order[i + 1]];
	}
	head = &list[order[0]];
}

static void *next_elements(void *position, size_t size)
{
	struct element *element = position;

	while (size-- && element)
		element = element->next;
	return element;
}

static int do_elements(void *start, void *end, void *arg)
{
	struct element *element;

	turns_yield();
	port_now_ns += 1000;
	for (element = start; element != end; element = element->next)
		if (element->index == fail_at)
			return -5;
	for (element = start; element != end; element = element->next)
		element->done++;
	return 0;
}

static void undo_elements(void *start, void *end, void *arg)
{
	for (struct element *e = start; e != end; e = e->next) {
		if (e->index < undo_at)
			kt_add(&faults, 1);
		undo_at = e->index + 1;
		e->undone++;
	}
}

static void run_worker(void *arg, unsigned index)
{
	kt_job_work(&work.job, &work.workers[index]);
}

/* Let workers go on in any order until all have ended. */
static void run_in_any_order(uint64_t *random)
{
	unsigned alive = (1u << NR_WORKERS) - 1;

	turns_start(NR_WORKERS, run_worker, NULL);
	while (alive) {
		unsigned i = (unsigned)ktest_random_below(random, NR_WORKERS);

		if (!turns_give(i))
			alive &= ~(1u << i);
	}
	turns_finish();
}

/* The list as two ranges: its first elements, and the rest. */
static void begin_list_job(uint64_t *random)
{
	unsigned first = (unsigned)ktest_random_below(random, NR_ELEMENTS + 1);
	uint64_t units[] = { first, NR_ELEMENTS - first };

	work_init(&work, 2, units);
	work.ranges[0].start = head;
	work.ranges[1].start = next_elements(head, first);
	work.job.func = do_elements;
	work.job.undo = undo_elements;
	work.job.iter = next_elements;
	work.job.split.min_chunk = 1 + ktest_random_below(random, 20);
	work.job.split.align = 1ull << ktest_random_below(random, 5);
	work_begin(&work, NR_WORKERS);
	undo_at = 0;
	faults = 0;
}

static void each_element_once(void **state)
{
	uint64_t random = ktest_seed();

	fail_at = NR_ELEMENTS;
	for (unsigned round = 0; round < 20; round++) {
		make_list(&random);
		begin_list_job(&random);
		run_in_any_order(&random);
		assert_int_equal(kt_job_error(&work.job), 0);
		for (unsigned i = 0; i < NR_ELEMENTS; i++)
			assert_int_equal(list[i].done, 1);
		work_free(&work);
	}
}

/* The last chunk of a range may be a single element, also the only one. */
static void single_elements_are_chunks(void **state)
{
	uint64_t random = ktest_seed();

	fail_at = NR_ELEMENTS;
	for (unsigned first = 0; first < 3; first++) {
		uint64_t units[] = { first, NR_ELEMENTS - first };

		make_list(&random);
		begin_list_job(&random);
		work.ranges[0].units = units[0];
		work.ranges[1].units = units[1];
		work.ranges[1].start = next_elements(head, first);
		work.job.split.min_chunk = 1;
		work.job.split.align = 1;
		work.job.split.target_ns = 1;
		work_begin(&work, NR_WORKERS);
		run_in_any_order(&random);
		for (unsigned i = 0; i < NR_ELEMENTS; i++)
			assert_int_equal(list[i].done, 1);
		work_free(&work);
	}
}

static void undo_gets_true_positions(void **state)
{
	uint64_t random = ktest_seed();

	for (unsigned round = 0; round < 60; round++) {
		make_list(&random);
		begin_list_job(&random);
		fail_at = (unsigned)ktest_random_below(&random, NR_ELEMENTS);
		run_in_any_order(&random);
		assert_int_equal(kt_job_error(&work.job), -5);
		work_undo(&work);
		assert_int_equal(faults, 0);
		for (unsigned i = 0; i < NR_ELEMENTS; i++)
			assert_int_equal(list[i].undone, list[i].done);
		work_free(&work);
	}
}

/*
 * A sparse table: row i has weights[i] entries.  A position is row and entry
 * in one word; the entry is always one that exists.
 */
static const unsigned weights[] = { 0, 300, 0, 0, 1, 1, 1, 90, 0, 7, 0 };
#define NR_ROWS KTEST_ARRAY_SIZE(weights)
#define ROW_SHIFT 16

static unsigned hits[NR_ROWS][512];

static void *next_entries(void *position, size_t size)
{
	uintptr_t row = (uintptr_t)position >> ROW_SHIFT;
	uintptr_t entry = (uintptr_t)position & ((1u << ROW_SHIFT) - 1);

	entry += size;
	while (row < NR_ROWS && entry >= weights[row]) {
		entry -= weights[row];
		row++;
	}
	return (void *)(row << ROW_SHIFT | entry);
}

static int do_entries(void *start, void *end, void *arg)
{
	void *at = start;

	while (at != end) {
		uintptr_t row = (uintptr_t)at >> ROW_SHIFT;

		if (row >= NR_ROWS) {
			kt_add(&faults, 1);
			break;
		}
		hits[row][(uintptr_t)at & ((1u << ROW_SHIFT) - 1)]++;
		port_now_ns += 500;
		at = next_entries(at, 1);
	}
	return 0;
}

static void skewed_table_is_cut_anywhere(void **state)
{
	static const uint64_t units[] = { 400 };

	work_init(&work, 1, units);
	work.ranges[0].start = next_entries(NULL, 0);
	work.job.func = do_entries;
	work.job.iter = next_entries;
	work.job.split.min_chunk = 3;
	work_begin(&work, 2);
	faults = 0;
	work.workers[0].tick = work_leave;
	work.workers[1].tick = work_leave;
	for (unsigned i = 0; !kt_job_idle(&work.job); i++)
		kt_job_work(&work.job, &work.workers[i % 2]);
	assert_int_equal(faults, 0);
	assert_int_equal(work.workers[0].units + work.workers[1].units, 400);
	for (unsigned row = 0; row < NR_ROWS; row++)
		for (unsigned i = 0; i < 512; i++)
			assert_int_equal(hits[row][i], i < weights[row]);
	work_free(&work);
}

KTEST_MAIN(KTEST(each_element_once), KTEST(single_elements_are_chunks),
	   KTEST(undo_gets_true_positions), KTEST(skewed_table_is_cut_anywhere))
