/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Small conveniences over cmocka for the tests in unit/ and api/.  Owns: the
 * includes that cmocka wants before itself, the main function, skips with a
 * reason, seeds, child processes with a time limit.  Does not own failing
 * allocations (failalloc.h) or counting results (tests/run).
 *
 *	#include "ktest.h"
 *
 *	static void ends_with_its_error(void **state)
 *	{
 *		assert_int_equal(ktask_run(...), -EIO);
 *	}
 *
 *	KTEST_MAIN(KTEST(ends_with_its_error))
 *
 * Behaves badly with cmocka's assertions inside a child process: there they
 * would jump back into the parent's list of tests.  Use ktest_check() there.
 */
#ifndef KTEST_H
#define KTEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define KTEST(func) cmocka_unit_test(func)

/* One group of tests is one program: TAP has one plan. */
#define KTEST_MAIN(...)                                            \
	int main(void)                                             \
	{                                                          \
		const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
                                                                   \
		return cmocka_run_group_tests(tests, NULL, NULL);  \
	}

#define KTEST_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* ktest_skip - leave the test; the runner counts it and prints the reason */
#define ktest_skip(...)                      \
	do {                                 \
		ktest_say_skip(__VA_ARGS__); \
		skip();                      \
	} while (0)

void ktest_say_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * ktest_seed - seed of a random test, printed when first asked for
 *
 * KTASK_TEST_SEED repeats an earlier run.
 */
uint64_t ktest_seed(void);

/* ktest_random - next number of the sequence that *state stands for */
uint64_t ktest_random(uint64_t *state);

/* ktest_random_below - the same, in [0, bound); 0 for bound 0 */
uint64_t ktest_random_below(uint64_t *state, uint64_t bound);

/* Time that only goes forward, and CPU time of this process and this thread, in
 * nanoseconds. */
uint64_t ktest_now_ns(void);
uint64_t ktest_cpu_ns(void);
uint64_t ktest_thread_cpu_ns(void);

#define KTEST_TIMED_OUT (-1)
#define KTEST_CHILD_SECONDS 100

/*
 * ktest_in_child - run func(arg) in a forked process
 *
 * What func returns becomes the child's exit status (by _exit(): no exit
 * handler runs unless func calls exit() itself).  The child's standard output
 * goes to standard error, so that it cannot disturb the TAP.
 *
 * Return: the status as of waitpid(2), or KTEST_TIMED_OUT after @seconds,
 * the child then having been killed.
 */
int ktest_in_child_for(int (*func)(void *arg), void *arg, unsigned seconds);

static inline int ktest_in_child(int (*func)(void *arg), void *arg)
{
	return ktest_in_child_for(func, arg, KTEST_CHILD_SECONDS);
}

/* ktest_wait_for - the same status, of a child that the test made itself */
int ktest_wait_for(pid_t pid, unsigned seconds);

/* ktest_check - in a child: say what is not so, and end the child with 1 */
#define ktest_check(expr)                                              \
	do {                                                           \
		if (!(expr))                                           \
			ktest_check_failed(#expr, __FILE__, __LINE__); \
	} while (0)

void ktest_check_failed(const char *expr, const char *file, int line)
	__attribute__((noreturn));

/* For a library that the sanitizers slow down or that maps their shadow. */
#if defined(__SANITIZE_ADDRESS__)
#define KTEST_ASAN 1
#else
#define KTEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define KTEST_TSAN 1
#else
#define KTEST_TSAN 0
#endif

#endif /* KTEST_H */
