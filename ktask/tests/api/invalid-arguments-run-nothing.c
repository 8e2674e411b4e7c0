/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What ktask.h calls invalid is -EINVAL from every call that begins a job, and
 * neither the thread function nor undo has been called.
 */
#include "support/work.h"

static unsigned nr_calls;
static unsigned char positions[8]; /* of real memory */

static int count_chunk(void *start, void *end, void *arg)
{
	__atomic_add_fetch(&nr_calls, 1, __ATOMIC_RELAXED);
	return 0;
}

static void count_undo(void *start, void *end, void *arg)
{
	count_chunk(start, end, arg);
}

static struct ktask_ctl make_ctl(void)
{
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);

	ktask_ctl_set_undo_func(&ctl, count_undo);
	return ctl;
}

static void check_refused(const struct ktask_node *nodes, size_t nr_nodes,
			  const struct ktask_ctl *ctl)
{
	struct ktask_job *job = (struct ktask_job *)positions;

	nr_calls = 0;
	assert_int_equal(ktask_run_numa(nodes, nr_nodes, ctl), -EINVAL);
	assert_int_equal(ktask_start_numa(&job, nodes, nr_nodes, ctl), -EINVAL);
	assert_null(job);
	assert_int_equal(nr_calls, 0);
}

static void refused_everywhere(void *start, size_t size,
			       const struct ktask_ctl *ctl)
{
	struct ktask_job *job = (struct ktask_job *)positions;
	struct ktask_node node = { start, size, NUMA_NO_NODE };

	check_refused(&node, 1, ctl);
	assert_int_equal(ktask_run(start, size, ctl), -EINVAL);
	assert_int_equal(ktask_start(&job, start, size, ctl), -EINVAL);
	assert_null(job);
	assert_int_equal(nr_calls, 0);
}

#define REFUSED_WITH(change)                            \
	do {                                            \
		struct ktask_ctl ctl = make_ctl();      \
                                                        \
		ctl.change;                             \
		refused_everywhere(positions, 8, &ctl); \
		refused_everywhere(positions, 0, &ctl); \
		ctl.min_chunk_size *= 1000000;          \
		refused_everywhere(positions, 8, &ctl); \
	} while (0)

static void control_blocks_are_checked(void **state)
{
	refused_everywhere(positions, 8, NULL);
	REFUSED_WITH(thread_func = NULL);
	REFUSED_WITH(min_chunk_size = 0);
	REFUSED_WITH(struct_size = 0);
	REFUSED_WITH(flags = 4);
	REFUSED_WITH(flags = 0x80000000u);
	REFUSED_WITH(align = 3);
	REFUSED_WITH(align = 6);
	REFUSED_WITH(align = SIZE_MAX);
	for (int i = 0; i < 4; i++)
		REFUSED_WITH(reserved[i] = 1ull << (i * 21));
}

static void ranges_end_in_the_address_space(void **state)
{
	char *last = (char *)UINTPTR_MAX;
	size_t chunks[] = { 1, 4096, SIZE_MAX };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(chunks); i++) {
		struct ktask_ctl ctl = make_ctl();

		ctl.min_chunk_size = chunks[i];
		refused_everywhere(last, 1, &ctl);
		refused_everywhere(last - 4096, 4097, &ctl);
		/* The default iterator by its name. */
		ktask_ctl_set_iter_func(&ctl, ktask_iter_range);
		refused_everywhere(last, 1, &ctl);
		refused_everywhere(last - 4096, 4097, &ctl);
		refused_everywhere((char *)1, SIZE_MAX, &ctl);
		refused_everywhere(positions, SIZE_MAX, &ctl);
	}
}

/* The last of many ranges is wrong: the others are not run first. */
static void no_range_runs_when_one_is_wrong(void **state)
{
	for (size_t nr = 1; nr <= 9; nr++) {
		struct ktask_node nodes[9];
		struct ktask_ctl ctl = make_ctl();

		for (size_t i = 0; i < nr; i++)
			nodes[i] = (struct ktask_node){ positions, 8, 0 };
		nodes[nr - 1].nid = -2;
		check_refused(nodes, nr, &ctl);
		nodes[nr - 1].nid = INT32_MIN;
		check_refused(nodes, nr, &ctl);
		nodes[nr - 1].nid = 0;
		nodes[nr - 1].task_size = SIZE_MAX;
		check_refused(nodes, nr, &ctl);
	}
}

static void arrays_and_jobs_must_be_there(void **state)
{
	struct ktask_node node = { positions, 8, 0 };
	struct ktask_ctl ctl = make_ctl();

	check_refused(NULL, 1, &ctl);
	check_refused(NULL, SIZE_MAX, &ctl);
	nr_calls = 0;
	assert_int_equal(ktask_start(NULL, positions, 8, &ctl), -EINVAL);
	assert_int_equal(ktask_start_numa(NULL, &node, 1, &ctl), -EINVAL);
	assert_int_equal(ktask_wait(NULL), -EINVAL);
	assert_int_equal(ktask_poll(NULL, NULL), -EINVAL);
	ktask_cancel(NULL);
	assert_int_equal(nr_calls, 0);
}

/* With what lay on the stack before as its only hint at any work. */
static void __attribute__((noinline)) soil_the_stack(void)
{
	volatile uint64_t words[4096];

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(words); i++)
		words[i] = 0x1000000 - i;
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(words); i++)
		assert_true(words[i]);
}

static void started_and_waited(struct ktask_node *nodes, size_t nr,
			       const struct ktask_ctl *ctl)
{
	struct ktask_job *job;

	assert_int_equal(ktask_start_numa(&job, nodes, nr, ctl), 0);
	assert_int_equal(ktask_poll(job, NULL), 0);
	assert_int_equal(ktask_wait(job), 0);
}

static void no_work_succeeds_without_a_call(void **state)
{
	struct ktask_node empty[6] = { { positions, 0, 0 }, { NULL, 0, -1 } };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_ctl ctl = make_ctl();

	nr_calls = 0;
	for (int with_result = 0; with_result < 2; with_result++) {
		if (with_result)
			ktask_ctl_set_result(&ctl, &result);
		assert_int_equal(ktask_run(positions, 0, &ctl), 0);
		assert_int_equal(ktask_run(NULL, 0, &ctl), 0);
		for (size_t nr = 0; nr <= 6; nr++) {
			soil_the_stack();
			assert_int_equal(ktask_run_numa(empty, nr, &ctl), 0);
			started_and_waited(empty, nr, &ctl);
		}
		soil_the_stack();
		assert_int_equal(ktask_run_numa(NULL, 0, &ctl), 0);
	}
	assert_int_equal(nr_calls, 0);
	assert_int_equal(result.chunks, 0);
	assert_int_equal(result.units, 0);
	assert_int_equal(result.error, 0);
}

KTEST_MAIN(KTEST(control_blocks_are_checked),
	   KTEST(ranges_end_in_the_address_space),
	   KTEST(no_range_runs_when_one_is_wrong),
	   KTEST(arrays_and_jobs_must_be_there),
	   KTEST(no_work_succeeds_without_a_call))
