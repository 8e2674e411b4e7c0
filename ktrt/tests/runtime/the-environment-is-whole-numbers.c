/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * KTRT_WORKERS is a whole number; anything else counts as not written, as in
 * ktask's variables, and more than there are cores is as many as there are.
 */
#include "support/runs.h"

#include <stdlib.h>

static unsigned workers_by(const char *text)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	if (text)
		setenv("KTRT_WORKERS", text, 1);
	else
		unsetenv("KTRT_WORKERS");
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_info_get(&info), 0);
	assert_int_equal(ktrt_stop(), 0);
	return info.workers;
}

static void only_numbers_count(void **state)
{
	static const char *const wrong[] = { "1x", " 1", "+1", "-1", "1.0",
					     "x",  "",	 "0",  "0x1" };
	unsigned all = workers_by(NULL);

	if (all < 2)
		ktest_skip("there is nothing to narrow on one core");
	assert_int_equal(workers_by("1"), 1);
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(wrong); i++) {
		printf("# '%s'\n", wrong[i]);
		assert_int_equal(workers_by(wrong[i]), all);
	}
	assert_true(workers_by("65536") >= all);
	assert_true(workers_by("99999999999999999999999") >= all);
}

KTEST_MAIN(KTEST(only_numbers_count))
