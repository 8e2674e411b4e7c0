/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The tests rely on tests/support/ktest.h: a child's verdict comes back
 * whole, a hung child is killed, a seed repeats its sequence.
 */
#include "ktest.h"

#include <signal.h>
#include <sys/wait.h>

static int give_back(void *arg)
{
	return *(int *)arg;
}

static int hang_forever(void *arg)
{
	for (;;)
		pause();
	return 0;
}

static int die_by_signal(void *arg)
{
	raise(SIGKILL);
	return 0;
}

static int fail_a_check(void *arg)
{
	ktest_check(arg != NULL);
	return 0;
}

static int speak_tap(void *arg)
{
	puts("not ok 1 - a child must not be heard");
	exit(0);
}

static void status_comes_back(void **state)
{
	int seven = 7;
	int status = ktest_in_child(give_back, &seven);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	status = ktest_in_child(die_by_signal, NULL);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void failed_check_ends_the_child(void **state)
{
	int status = ktest_in_child(fail_a_check, NULL);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_int_equal(ktest_in_child(fail_a_check, state), 0);
}

static void hung_child_is_killed(void **state)
{
	assert_int_equal(ktest_in_child_for(hang_forever, NULL, 1),
			 KTEST_TIMED_OUT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void child_is_not_heard(void **state)
{
	assert_int_equal(ktest_in_child(speak_tap, NULL), 0);
}

static void seed_repeats_its_sequence(void **state)
{
	uint64_t one = ktest_seed();
	uint64_t two = ktest_seed();
	int i;

	assert_true(one == two);
	for (i = 0; i < 100; i++)
		assert_true(ktest_random(&one) == ktest_random(&two));
	for (i = 0; i < 100; i++)
		assert_true(ktest_random_below(&one, 3) < 3);
	two++;
	assert_true(ktest_random(&one) != ktest_random(&two));
}

KTEST_MAIN(KTEST(status_comes_back), KTEST(failed_check_ends_the_child),
	   KTEST(hung_child_is_killed), KTEST(child_is_not_heard),
	   KTEST(seed_repeats_its_sequence))
