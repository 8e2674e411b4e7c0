/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper lowers itself by two calls.  A thread that is raised between them, as by a
 * caller that cancels its item, has the policy and the nice value of the process
 * afterwards, not the lowest nice value.
 */
#include "ktest.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/pool/user_prio.h"

static bool raise_meanwhile;

/* In place of the C library's, so that the raise comes at its worst moment. */
__attribute__((visibility("default"))) int setpriority(__priority_which_t which,
						       id_t who, int nice)
{
	if (raise_meanwhile) {
		raise_meanwhile = false;
		prio_raise((pid_t)syscall(SYS_gettid));
	}
	return (int)syscall(SYS_setpriority, which, who, nice);
}

static int own_nice(void)
{
	return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static void need_rights(void)
{
	if (!prio_find_out((pid_t)syscall(SYS_gettid)) ||
	    prio_mode() != PRIO_LEND)
		ktest_skip("this process may not raise a thread");
}

static void a_raise_while_it_is_lowered_holds(void **state)
{
	int policy = sched_getscheduler(0);
	int nice = own_nice();

	need_rights();
	raise_meanwhile = true;
	prio_lower();
	assert_false(raise_meanwhile);
	assert_int_equal(sched_getscheduler(0), policy);
	assert_int_equal(own_nice(), nice);
}

static void without_one_it_is_the_lowest(void **state)
{
	need_rights();
	prio_lower();
	assert_true(prio_is_lowest(0));
	assert_int_equal(own_nice(), 19);
	assert_true(prio_raise(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(a_raise_while_it_is_lowered_holds),
		KTEST(without_one_it_is_the_lowest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
