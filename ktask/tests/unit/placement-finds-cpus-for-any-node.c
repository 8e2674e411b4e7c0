/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A node is served by its own CPUs, one without any by the nearest that has
 * some, counted from the CPUs to the memory; equally near ones take turns.
 */
#include "ktest.h"
#include "support/port.h"

#include "core/placement.h"

static const int ids[] = { 0, 8, 252, 255 };
/* [from][to], by the ids above; another way back than there. */
static const unsigned table[4][4] = {
	{ 10, 20, 30, 40 },
	{ 20, 10, 35, 40 },
	{ 99, 11, 10, 12 },
	{ 99, 99, 99, 10 },
};

static unsigned from_table(int a, int b)
{
	unsigned i = 0, j = 0;

	while (ids[i] != a)
		i++;
	while (ids[j] != b)
		j++;
	return table[i][j];
}

static int use_table(void **state)
{
	port_distance = from_table;
	return 0;
}

static int served_by(int wanted, const unsigned nr_cpus[4], unsigned turn)
{
	int index = kt_placement_node(wanted, ids, nr_cpus, 4, turn);

	return index < 0 ? index : ids[index];
}

static void itself_where_it_has_cpus(void **state)
{
	static const unsigned nr_cpus[] = { 1, 1, 1, 1 };

	for (unsigned turn = 0; turn < 5; turn++)
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(served_by(ids[i], nr_cpus, turn),
					 ids[i]);
}

static void else_the_nearest_that_has(void **state)
{
	static const unsigned two[] = { 4, 4, 0, 0 };
	static const unsigned far[] = { 0, 4, 0, 0 };
	static const unsigned last[] = { 0, 0, 1, 0 };

	assert_int_equal(served_by(252, two, 0), 0);
	assert_int_equal(served_by(252, far, 0), 8);
	/* From 252 to 0 it is 99, from 0 to 252 it would be 30. */
	assert_int_equal(served_by(0, last, 0), 252);
}

static void equally_near_ones_take_turns(void **state)
{
	static const unsigned two[] = { 4, 4, 0, 0 };
	static const unsigned three[] = { 4, 4, 1, 0 };

	for (unsigned turn = 0; turn < 6; turn++)
		assert_int_equal(served_by(255, two, turn), turn % 2 ? 8 : 0);
	/* 252 is nearer than both. */
	assert_int_equal(served_by(255, three, 1), 252);
}

static void nowhere_if_none_has(void **state)
{
	static const unsigned none[] = { 0, 0, 0, 0 };
	static const unsigned all[] = { 1, 1, 1, 1 };

	assert_int_equal(served_by(0, none, 3), -1);
	assert_int_equal(served_by(255, none, 3), -1);
	/* Not in the table: it must not even be asked for. */
	assert_int_equal(kt_placement_node(7, ids, all, 4, 0), -1);
	assert_int_equal(kt_placement_node(KT_NO_NODE, ids, all, 4, 0), -1);
	assert_int_equal(kt_placement_node(0, ids, all, 0, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(itself_where_it_has_cpus),
		KTEST(else_the_nearest_that_has),
		KTEST(equally_near_ones_take_turns),
		KTEST(nowhere_if_none_has),
	};

	return cmocka_run_group_tests(tests, use_table, NULL);
}
