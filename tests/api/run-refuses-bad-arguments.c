/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Wrong arguments are -EINVAL, and nothing runs; no work is no call.
 */
#include "ktest.h"

#include <errno.h>
#include <string.h>

#include <ktask/ktask.h>

static unsigned calls;

static int count_call(void *start, void *end, void *arg)
{
	calls++;
	return 0;
}

static void count_undo(void *start, void *end, void *arg)
{
	calls++;
}

static struct ktask_ctl good(void)
{
	DEFINE_KTASK_CTL(ctl, count_call, NULL, 1);

	ktask_ctl_set_undo_func(&ctl, count_undo);
	return ctl;
}

static void refused(void *start, size_t size, const struct ktask_ctl *ctl)
{
	struct ktask_node node = { start, size, NUMA_NO_NODE };
	struct ktask_job *job = (struct ktask_job *)&node;

	calls = 0;
	assert_int_equal(ktask_run(start, size, ctl), -EINVAL);
	assert_int_equal(ktask_run_numa(&node, 1, ctl), -EINVAL);
	assert_int_equal(ktask_start(&job, start, size, ctl), -EINVAL);
	assert_null(job);
	assert_int_equal(calls, 0);
}

static void bad_control_blocks_are_refused(void **state)
{
	struct ktask_ctl ctl = good();

	refused(NULL, 100, NULL);
	ctl.thread_func = NULL;
	refused(NULL, 100, &ctl);
	ctl = good();
	ctl.min_chunk_size = 0;
	refused(NULL, 100, &ctl);
	ctl = good();
	ctl.struct_size--;
	refused(NULL, 100, &ctl);
	ctl = good();
	ctl.flags = 1;
	refused(NULL, 100, &ctl);
	ctl = good();
	ctl.align = 3;
	refused(NULL, 100, &ctl);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(ctl.reserved); i++) {
		ctl = good();
		ctl.reserved[i] = 1;
		refused(NULL, 100, &ctl);
	}
	ctl = good();
	ctl.cpus = &ctl;
	refused(NULL, 100, &ctl);
}

static void ranges_past_the_end_are_refused(void **state)
{
	struct ktask_ctl ctl = good();

	refused((void *)1, SIZE_MAX, &ctl);
	refused((void *)UINTPTR_MAX, 1, &ctl);
	refused((void *)(UINTPTR_MAX - 4096), 8192, &ctl);
	/* Too small to split is no excuse. */
	ctl.min_chunk_size = SIZE_MAX;
	refused((void *)UINTPTR_MAX, 1, &ctl);
}

static void the_last_address_can_be_reached(void **state)
{
	struct ktask_ctl ctl = good();

	ctl.min_chunk_size = 64;
	calls = 0;
	assert_int_equal(ktask_run((void *)(UINTPTR_MAX - 64), 64, &ctl), 0);
	assert_int_equal(calls, 1);
}

static void bad_nodes_are_refused(void **state)
{
	struct ktask_ctl ctl = good();
	struct ktask_node node = { NULL, 10, -2 };
	struct ktask_node sum[2] = { { NULL, SIZE_MAX, 0 }, { NULL, 2, 0 } };

	calls = 0;
	assert_int_equal(ktask_run_numa(NULL, 1, &ctl), -EINVAL);
	assert_int_equal(ktask_run_numa(&node, 1, &ctl), -EINVAL);
	assert_int_equal(ktask_run_numa(sum, 2, &ctl), -EINVAL);
	assert_int_equal(ktask_start(NULL, NULL, 10, &ctl), -EINVAL);
	assert_int_equal(calls, 0);
}

static void no_work_is_no_call(void **state)
{
	struct ktask_ctl ctl = good();
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_node nodes[3] = { { NULL, 0, 0 }, { NULL, 0, 1 } };

	calls = 0;
	assert_int_equal(ktask_run(NULL, 0, &ctl), 0);
	assert_int_equal(ktask_run_numa(NULL, 0, &ctl), 0);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run(NULL, 0, &ctl), 0);
	assert_int_equal(ktask_run_numa(nodes, 3, &ctl), 0);
	assert_int_equal(ktask_run_numa(NULL, 0, &ctl), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(result.chunks, 0);
	assert_int_equal(result.threads, 0);
}

KTEST_MAIN(KTEST(bad_control_blocks_are_refused),
	   KTEST(ranges_past_the_end_are_refused),
	   KTEST(the_last_address_can_be_reached), KTEST(bad_nodes_are_refused),
	   KTEST(no_work_is_no_call))
