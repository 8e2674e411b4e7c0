/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A size to which the runtime cannot add its own without a wrap is answered by -ENOMEM,
 * as any other for which there is no memory, and nothing is called.
 */
#include "support/runs.h"

#include <stdint.h>

static unsigned long called;

static int count_task(void *arg)
{
	more(called);
	return 0;
}

static int count_part(size_t first, size_t end, void *value, void *arg)
{
	more(called);
	return 0;
}

static int count_combine(void *into, void *from, void *arg)
{
	more(called);
	return 0;
}

static void try_bytes(size_t bytes)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;
	char argument[16] = { 0 };

	attr.arg_bytes = bytes;
	assert_int_equal(ktrt_graph_new(&graph), 0);
	assert_int_equal(ktrt_graph_add(graph, count_task, argument, &attr),
			 -ENOMEM);
	ktrt_graph_free(graph);
	assert_int_equal(ktrt_spawn_attr(count_task, argument, &attr), -ENOMEM);
	assert_int_equal(ktrt_spawn_copy(count_task, argument, bytes), -ENOMEM);
	assert_null(ktrt_spawn_begin(count_task, bytes, 0));
	assert_int_equal(ktrt_reduce(0, 10, 1, count_part, count_combine,
				     argument, bytes, NULL),
			 -ENOMEM);
}

static void wrapped_sizes_are_refused(void **state)
{
	if (KTEST_TSAN)
		ktest_skip("the thread sanitizer ends who asks for so much");
	assert_int_equal(ktrt_start(NULL), 0);
	for (size_t less = 0; less <= 256; less++)
		try_bytes(SIZE_MAX - less);
	try_bytes(SIZE_MAX / 2);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(called), 0);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(wrapped_sizes_are_refused))
