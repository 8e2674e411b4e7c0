/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * KT_MIN() and KT_MAX() read each argument once, also nested in one another: a
 * bound holds for a value that another process changes meanwhile.  Types of
 * different width and sign are compared as C compares them.
 */
#include "ktest.h"

#include "core/deps.h"

static uint32_t nr_read;

/* As memory that another process raises with every look. */
static uint32_t read_growing(void)
{
	return 10 * ++nr_read;
}

static void each_argument_is_read_once(void **state)
{
	nr_read = 0;
	assert_int_equal(KT_MIN(read_growing(), 15u), 10);
	assert_int_equal(nr_read, 1);
	assert_int_equal(KT_MIN(15u, read_growing()), 15);
	assert_int_equal(KT_MAX(read_growing(), 15u), 30);
	assert_int_equal(KT_MAX(15u, read_growing()), 40);
	assert_int_equal(nr_read, 4);
}

static void nested_arguments_too(void **state)
{
	nr_read = 0;
	assert_int_equal(KT_MAX(KT_MIN(read_growing(), 15u), 1u), 10);
	assert_int_equal(KT_MIN(KT_MIN(read_growing(), 15u),
				KT_MIN(read_growing(), 40u)),
			 15);
	assert_int_equal(nr_read, 3);
}

static void types_are_those_of_the_comparison(void **state)
{
	const uint64_t big = 1ull << 40;

	assert_true(KT_MIN(big, UINT32_MAX) == UINT32_MAX);
	assert_true(KT_MAX(big, 1) == big);
	assert_true(KT_MAX(-3, 1) == 1);
	assert_true(KT_MIN(-3, 1) == -3);
	assert_true(KT_MAX(0.25, 1e-6) == 0.25);
	assert_int_equal(sizeof(KT_MIN((uint32_t)1, big)), sizeof(big));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_argument_is_read_once),
		cmocka_unit_test(nested_arguments_too),
		cmocka_unit_test(types_are_those_of_the_comparison),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
