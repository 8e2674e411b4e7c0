/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * In a small set of CPUs, idle is what idles there: neither threads on other CPUs of the
 * machine nor our own helpers make it busy, and idle CPUs elsewhere do not make it idle.
 */
#include "ktest.h"
#include "tree.h"

#include "util/file.h"
#include "util/idle_cpus.h"

#define MS ((uint64_t)1000000)

static struct tree tree;
static struct kt_cpus own;

static int make_tree(void **state)
{
	tree_begin(&tree);
	file_root = tree.root;
	own = (struct kt_cpus){ 0 };
	cpus_set(&own, 2);
	cpus_set(&own, 65);
	return 0;
}

static int remove_tree(void **state)
{
	file_root = "";
	tree_end(&tree);
	return 0;
}

/* Idle time of CPU 2, of CPU 65 and of all others, in ticks. */
static void put_stat(unsigned second, unsigned last, unsigned others)
{
	char text[8192];
	int len = snprintf(text, sizeof(text), "cpu  9 9 9 9 9 9 0 0 0 0\n");

	for (unsigned cpu = 0; cpu < 66; cpu++)
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				"cpu%u 7 0 7 %u 1 0 0 0 0 0\n", cpu,
				cpu == 2    ? second
				: cpu == 65 ? last
					    : others);
	snprintf(text + len, sizeof(text) - (size_t)len, "intr 9 9\nctxt 9\n");
	tree_put(&tree, "/proc/stat", text);
}

static uint64_t read_idle(void)
{
	uint64_t idle_ns = 0;

	assert_true(idle_cpus_read(&own, &idle_ns));
	return idle_ns;
}

static void only_those_cpus_count(void **state)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	put_stat(10, 20, 5000);
	assert_int_equal(read_idle(), (10 + 20 + 2) * tick_ns);
	put_stat(10, 21, 9000);
	assert_int_equal(read_idle(), (10 + 21 + 2) * tick_ns);
}

static void a_cpu_that_is_not_told_of_may_be_busy(void **state)
{
	uint64_t idle_ns;

	put_stat(10, 20, 30);
	cpus_set(&own, 66);
	assert_false(idle_cpus_read(&own, &idle_ns));
	tree_put(&tree, "/proc/stat", "nothing of the kind\n");
	assert_false(idle_cpus_read(&own, &idle_ns));
	tree_remove(&tree, "/proc");
	assert_false(idle_cpus_read(&own, &idle_ns));
}

static void half_a_cpu_is_enough(void **state)
{
	struct idle_cpus last = { 0 };

	/* Of the time before the first reading nothing is known. */
	assert_false(idle_cpus_note(&last, 5000 * MS, 900 * MS, 0));
	assert_false(idle_cpus_note(&last, 5100 * MS, 940 * MS, 0));
	assert_true(idle_cpus_note(&last, 5200 * MS, 1000 * MS, 0));
	/* Too soon to tell. */
	assert_true(idle_cpus_note(&last, 5250 * MS, 1000 * MS, 0));
	assert_false(idle_cpus_note(&last, 5300 * MS, 1000 * MS, 0));
	assert_false(idle_cpus_note(&last, 5400 * MS, 990 * MS, 0));
}

static void own_helpers_count_as_idle(void **state)
{
	struct idle_cpus last = { 0 };

	idle_cpus_note(&last, 5000 * MS, 0, 100 * MS);
	assert_true(idle_cpus_note(&last, 5100 * MS, 0, 180 * MS));
	assert_false(idle_cpus_note(&last, 5200 * MS, 0, 190 * MS));
}

static void what_is_long_ago_says_nothing(void **state)
{
	struct idle_cpus last = { 0 };

	idle_cpus_note(&last, 5000 * MS, 0, 0);
	assert_false(idle_cpus_note(&last, 9000 * MS, 8000 * MS, 0));
	assert_true(idle_cpus_note(&last, 9100 * MS, 8100 * MS, 0));
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(only_those_cpus_count), T(a_cpu_that_is_not_told_of_may_be_busy),
	   T(half_a_cpu_is_enough), T(own_helpers_count_as_idle),
	   T(what_is_long_ago_says_nothing))
