/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests that go wrong on purpose, one way for each name given as argument:
 * what tests/runner/the-runner-counts-rightly.t shows to the runner.  Linked
 * with tests/support like any test.
 */
#include "ktest.h"

#include <signal.h>
#include <string.h>

static void pass_at_once(void **state)
{
}

static void fail_plainly(void **state)
{
	assert_int_equal(1, 2);
}

static void fail_with_words(void **state)
{
	fail_msg("words of %s", "failure");
}

static void skip_with_reason(void **state)
{
	ktest_skip("there is no %s", "reason");
}

static void skip_silently(void **state)
{
	skip();
}

static void touch_nothing(void **state)
{
	raise(SIGSEGV);
}

static void abort_now(void **state)
{
	abort();
}

static void leave_early(void **state)
{
	exit(0);
}

static void leave_silently(void **state)
{
	_exit(0);
}

static void hang_forever(void **state)
{
	for (;;)
		pause();
}

static void leave_a_child(void **state)
{
	if (!fork())
		hang_forever(state);
}

static void fork_and_return(void **state)
{
	if (!fork())
		exit(0);
}

static int refuse_setup(void **state)
{
	return -1;
}

#define NAMED(test)         \
	{                   \
#test, test \
	}

static const struct {
	const char *name;
	CMUnitTestFunction func;
} ways[] = {
	NAMED(pass_at_once),  NAMED(fail_plainly),  NAMED(fail_with_words),
	NAMED(skip_silently), NAMED(touch_nothing), NAMED(skip_with_reason),
	NAMED(abort_now),     NAMED(leave_early),   NAMED(leave_silently),
	NAMED(hang_forever),  NAMED(leave_a_child), NAMED(fork_and_return),
};

static CMUnitTestFunction find_way(const char *name)
{
	size_t i;

	for (i = 0; i < KTEST_ARRAY_SIZE(ways); i++) {
		if (!strcmp(ways[i].name, name))
			return ways[i].func;
	}
	exit(2);
}

/* The way in the middle: what comes behind it must be missed if it is lost. */
static int run_one(CMUnitTestFunction func)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pass_at_once),
		{ "way", func, NULL, NULL, NULL },
		cmocka_unit_test(pass_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

static int run_fixture(const char *name)
{
	const struct CMUnitTest plain[] = { cmocka_unit_test(pass_at_once) };
	const struct CMUnitTest setup[] = { cmocka_unit_test_setup(
		pass_at_once, refuse_setup) };
	const struct CMUnitTest teardown[] = { cmocka_unit_test_teardown(
		pass_at_once, refuse_setup) };

	if (!strcmp(name, "setup"))
		return cmocka_run_group_tests(setup, NULL, NULL);
	if (!strcmp(name, "teardown"))
		return cmocka_run_group_tests(teardown, NULL, NULL);
	if (!strcmp(name, "group_setup"))
		return cmocka_run_group_tests(plain, refuse_setup, NULL);
	if (!strcmp(name, "group_teardown"))
		return cmocka_run_group_tests(plain, NULL, refuse_setup);
	if (!strcmp(name, "two_groups"))
		return cmocka_run_group_tests(plain, NULL, NULL) |
		       cmocka_run_group_tests(plain, NULL, NULL);
	return run_one(find_way(name));
}

int main(int argc, char **argv)
{
	return argc == 2 ? run_fixture(argv[1]) : 2;
}
