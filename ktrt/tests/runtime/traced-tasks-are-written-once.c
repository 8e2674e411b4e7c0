/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * With a trace the runtime does the same, in whatever way it was made, and each
 * task that ran is written down once.
 */
#include "support/runs.h"

#include <stdlib.h>
#include <unistd.h>

static char json[64], dot[64];
static int data[4];

static int do_little(void *arg)
{
	return 0;
}

static int sleep_a_little(void *arg)
{
	nap_us(100);
	return 0;
}

static int make_some(void *arg)
{
	int error = 0;

	for (int i = 0; i < 5 && !error; i++)
		error = ktrt_spawn(i % 2 ? sleep_a_little : do_little, NULL);
	return error ? error : ktrt_wait();
}

static void run_some(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	attr.nr_deps = 1;
	for (int i = 0; i < 60; i++) {
		const struct ktrt_dep dep = { &data[i % 4], 0,
					      i % 3 ? KTRT_IN
						    : KTRT_COMMUTATIVE };

		attr.deps = &dep;
		assert_int_equal(ktrt_spawn_attr(make_some, NULL, &attr), 0);
		assert_int_equal(
			ktrt_graph_add(graph, sleep_a_little, NULL, &attr), i);
	}
	assert_int_equal(ktrt_graph_run(graph), 0);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(ktrt_spawn(do_little, NULL), 0);
	assert_int_equal(ktrt_run(make_some, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	ktrt_graph_free(graph);
}

/* How often the file has the text; it is gone then. */
static size_t count_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	char line[1024];
	size_t nr = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		nr += !!strstr(line, text);
	fclose(file);
	unlink(path);
	return nr;
}

static void tasks_are_written_once(void **state)
{
	for (size_t i = 0; i < NR_WAYS; i++) {
		struct ktrt_info info = KTRT_INFO_INIT;

		start_way(&all_ways[i]);
		run_some();
		assert_int_equal(ktrt_info_get(&info), 0);
		assert_int_equal(ktrt_stop(), 0);
		assert_int_equal(count_text(json, "\"cat\":\"task\""),
				 info.tasks);
		assert_int_equal(count_text(dot, "[label="), info.tasks);
	}
}

static int set_up(void **state)
{
	snprintf(json, sizeof(json), "/tmp/ktrt-trace-%d.json", (int)getpid());
	snprintf(dot, sizeof(dot), "/tmp/ktrt-trace-%d.dot", (int)getpid());
	return setenv("KTRT_TRACE", json, 1) || setenv("KTRT_DOT", dot, 1);
}

KTEST_MAIN(cmocka_unit_test_setup(tasks_are_written_once, set_up))
