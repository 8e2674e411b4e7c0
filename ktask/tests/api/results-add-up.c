/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The result describes what was done: sums agree, over nodes and threads, for
 * jobs that succeed and jobs that fail; structures of other sizes are filled
 * as far as they go.
 */
#include "support/work.h"

#include <string.h>

#define MANY_CPUS 8
#include "support/many_cpus.h"

#define NR_UNITS 1200

static size_t largest; /* chunk of the job */

static int use_a_little(struct work *work, size_t from, size_t to)
{
	size_t before = __atomic_load_n(&largest, __ATOMIC_RELAXED);

	burn_us(3);
	if (work->arg && from <= NR_UNITS / 2 && NR_UNITS / 2 < to)
		return -EIO;
	while (before < to - from &&
	       !__atomic_compare_exchange_n(&largest, &before, to - from, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return 0;
}

static void check_nodes(const struct ktask_result *result, unsigned nr_nodes)
{
	uint64_t units = 0, chunks = 0;

	assert_int_equal(result->nr_nodes, nr_nodes);
	for (unsigned i = 0; i < nr_nodes; i++) {
		const struct ktask_node_result *node = &result->nodes[i];

		units += node->units;
		chunks += node->chunks;
		assert_true(node->remote_chunks <= node->chunks);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(node->nid, result->nodes[j].nid);
	}
	assert_int_equal(units, result->units);
	assert_int_equal(chunks, result->chunks);
}

static void check_result(const struct ktask_result *result,
			 const struct work *work, unsigned nr_nodes)
{
	size_t nr_done = 0;

	for (size_t i = 0; i < NR_UNITS; i++)
		nr_done += work->done[i];
	assert_int_equal(result->units, nr_done);
	assert_int_equal(result->chunks + !!result->error, work->nr_chunks);
	assert_true(result->threads <= MANY_CPUS);
	assert_int_equal(!result->threads, !result->chunks);
	assert_true(result->helpers_lent < result->threads + MANY_CPUS);
	assert_true(result->cpu_ns > 0);
	assert_true(result->wall_ns > 0);
	assert_true(result->tail_ns <= result->wall_ns);
	assert_int_equal(result->largest_chunk,
			 __atomic_load_n(&largest, __ATOMIC_RELAXED));
	if (work->nr_helper_chunks &&
	    work->nr_helper_chunks < work->nr_chunks && !result->error)
		assert_true(result->threads > 1);
	check_nodes(result, nr_nodes);
}

static void run_ranges(size_t nr, int nr_nids, bool fails)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = use_a_little };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_node nodes[40];
	size_t each = NR_UNITS / nr;

	for (size_t i = 0; i < nr; i++)
		nodes[i] = (struct ktask_node){ WORK_BASE + i * each, each,
						(int)i % nr_nids - 1 };
	work_begin(&work, NR_UNITS);
	work.arg = fails ? &work : NULL;
	largest = 0;
	ktask_ctl_set_chunk_us(&ctl, 30);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run_numa(nodes, nr, &ctl), fails ? -EIO : 0);
	assert_int_equal(result.error, fails ? -EIO : 0);
	check_result(&result, &work,
		     nr < (size_t)nr_nids ? (unsigned)nr : (unsigned)nr_nids);
	work_end(&work);
}

static void sums_agree(void **state)
{
	static const size_t counts[] = { 1, 2, 3, 4, 8, 12, 40 };

	for (int round = 0; round < 10; round++)
		for (unsigned i = 0; i < KTEST_ARRAY_SIZE(counts); i++)
			for (int nids = 1; nids <= 5; nids++)
				run_ranges(counts[i], nids, false);
}

static void sums_of_failed_jobs_agree(void **state)
{
	static const size_t counts[] = { 1, 2, 4, 12 };

	for (int round = 0; round < 10; round++)
		for (unsigned i = 0; i < KTEST_ARRAY_SIZE(counts); i++)
			for (int nids = 1; nids <= 3; nids++)
				run_ranges(counts[i], nids, true);
}

/* Past KTASK_RESULT_NODES the rest is added up in the last. */
static void more_nodes_than_fit(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = use_a_little };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_node nodes[20];

	for (int i = 0; i < 20; i++)
		nodes[i] = (struct ktask_node){ WORK_BASE + i * 60, 60, i };
	work_begin(&work, NR_UNITS);
	largest = 0;
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run_numa(nodes, 20, &ctl), 0);
	check_result(&result, &work, KTASK_RESULT_NODES);
	work_end(&work);
}

/* A structure of @size bytes, with a fence behind it. */
static void check_size(size_t size, bool fails)
{
	struct {
		struct ktask_result result;
		unsigned char fence[64];
	} it;
	struct work work = { 0 };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	memset(&it, 0xa5, sizeof(it));
	it.result.struct_size = size;
	work_begin(&work, NR_UNITS);
	work.also = use_a_little;
	work.arg = fails ? &work : NULL;
	ktask_ctl_set_result(&ctl, &it.result);
	assert_int_equal(ktask_run(WORK_BASE, NR_UNITS, &ctl),
			 fails ? -EIO : 0);
	assert_int_equal(it.result.struct_size, size);
	if (size >= offsetof(struct ktask_result, fail_error))
		assert_int_equal(it.result.error, fails ? -EIO : 0);
	for (size_t i = size; i < sizeof(it); i++)
		assert_int_equal(((unsigned char *)&it)[i], 0xa5);
	work_end(&work);
}

/* An older header has a smaller structure. */
static void smaller_structures_are_not_overrun(void **state)
{
	for (size_t size = 8; size <= sizeof(struct ktask_result); size += 8) {
		check_size(size, false);
		check_size(size, true);
	}
}

/* A newer header has a larger one: what is unknown stays. */
static void larger_structures_are_kept(void **state)
{
	check_size(sizeof(struct ktask_result) + 32, true);
}

static void small_jobs_have_results_too(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = use_a_little };
	struct ktask_ctl ctl = work_ctl(&work, NR_UNITS);

	largest = 0;
	work_begin(&work, NR_UNITS);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run(WORK_BASE, NR_UNITS, &ctl), 0);
	assert_int_equal(result.threads, 1);
	assert_int_equal(result.chunks, 1);
	check_result(&result, &work, 1);
	work_end(&work);
}

KTEST_MAIN(KTEST(sums_agree), KTEST(sums_of_failed_jobs_agree),
	   KTEST(more_nodes_than_fit),
	   KTEST(smaller_structures_are_not_overrun),
	   KTEST(larger_structures_are_kept),
	   KTEST(small_jobs_have_results_too))
