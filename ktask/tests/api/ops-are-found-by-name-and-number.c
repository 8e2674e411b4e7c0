/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The table of operations says the same by number and by name.
 */
#include "ktest.h"

#include <string.h>

#include <ktask/ops.h>

static const char *const names[] = { "populate", "fill",   "discard", "lock",
				     "unmap",	 "unlock", "warm" };

static void every_name_is_found(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(names); i++) {
		const struct ktask_op *op = ktask_op_find(names[i]);

		assert_non_null(op);
		assert_string_equal(ktask_op_name(op), names[i]);
	}
	assert_null(ktask_op_find("populat"));
	assert_null(ktask_op_find(""));
	assert_null(ktask_op_find(NULL));
}

static void numbers_lead_to_all_and_end(void **state)
{
	unsigned nr = 0;

	while (ktask_op_at(nr)) {
		const struct ktask_op *op = ktask_op_at(nr++);

		assert_ptr_equal(ktask_op_find(ktask_op_name(op)), op);
	}
	assert_int_equal(nr, KTEST_ARRAY_SIZE(names));
	assert_null(ktask_op_at(nr + 1));
	assert_null(ktask_op_at(~0u));
}

static void each_is_described(void **state)
{
	for (unsigned i = 0; ktask_op_at(i); i++) {
		const struct ktask_op *op = ktask_op_at(i);

		assert_true(strlen(ktask_op_summary(op)) > 10);
		assert_null(strchr(ktask_op_summary(op), '\n'));
		assert_true(ktask_op_min_chunk(op) >= 4096);
	}
	assert_null(ktask_op_name(NULL));
	assert_null(ktask_op_summary(NULL));
	assert_int_equal(ktask_op_min_chunk(NULL), 0);
}

KTEST_MAIN(KTEST(every_name_is_found), KTEST(numbers_lead_to_all_and_end),
	   KTEST(each_is_described))
