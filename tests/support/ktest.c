/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What ktest.h declares.  Linked into every test, also into those that use
 * cmocka alone: the buffering below is for them as well.
 */
#include "ktest.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>

/*
 * Into a pipe stdout would be written in one piece at the end: a test that is
 * killed would lose its plan and with it the count of what did not run, and a
 * forked child would print its copy of the buffer once more.
 */
static void __attribute__((constructor)) write_line_by_line(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/*
 * A job that begins beside busy CPUs has no helper (ktask/user/limits/overload.h).  Tests that
 * need helpers shall pass there too.
 */
static void __attribute__((constructor)) have_helpers_beside_others(void)
{
	setenv("KTASK_OVERLOAD", "ignore", 1);
}

/*
 * Asked for by thread sanitizer.  It would wait for a second at the end of
 * each process, for races with threads that go on: too long for tests of many
 * processes.  TSAN_OPTIONS adds to this.
 */
const char *__tsan_default_options(void) __attribute__((visibility("default")));
const char *__tsan_default_options(void)
{
	return "atexit_sleep_ms=0";
}

void ktest_say_skip(const char *fmt, ...)
{
	va_list args;

	fputs("# SKIP ", stdout);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

static uint64_t fresh_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)time(NULL);
	return seed;
}

uint64_t ktest_seed(void)
{
	static uint64_t seed;
	static int known;
	const char *given = getenv("KTASK_TEST_SEED");

	if (!known) {
		seed = given ? strtoull(given, NULL, 0) : fresh_seed();
		known = 1;
		printf("# seed: KTASK_TEST_SEED=%llu\n",
		       (unsigned long long)seed);
	}
	return seed;
}

/* Weyl sequence with a mixing step: any seed will do, also 0. */
uint64_t ktest_random(uint64_t *state)
{
	uint64_t mixed = *state += 0x9e3779b97f4a7c15u;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
	return mixed ^ (mixed >> 31);
}

uint64_t ktest_random_below(uint64_t *state, uint64_t bound)
{
	return bound ? ktest_random(state) % bound : 0;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t ktest_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t ktest_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t ktest_thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void ktest_check_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "# %s:%d: in the child: not so: %s\n", file, line,
		expr);
	_exit(1);
}

static void sleep_shortly(void)
{
	struct timespec two_ms = { 0, 2000000 };

	nanosleep(&two_ms, NULL);
}

int ktest_wait_for(pid_t pid, unsigned seconds)
{
	uint64_t end_ns = ktest_now_ns() + seconds * 1000000000ull;
	int status;

	for (;;) {
		pid_t ended = waitpid(pid, &status, WNOHANG);

		if (ended == pid)
			return status;
		if (ended < 0 && errno != EINTR)
			return KTEST_TIMED_OUT;
		if (ktest_now_ns() >= end_ns)
			break;
		sleep_shortly();
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return KTEST_TIMED_OUT;
}

int ktest_in_child_for(int (*func)(void *arg), void *arg, unsigned seconds)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return KTEST_TIMED_OUT;
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		_exit(func(arg));
	}
	return ktest_wait_for(pid, seconds);
}
