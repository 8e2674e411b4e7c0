/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * 60 processes that populate memory at once: all of it becomes present, all of
 * them end, and each gets on while the others work, or have all the permits.  How
 * long that takes is for `make bench-overload` to say.
 */
#include "ktest.h"
#include "pages.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "user/limits/permits.h"

#define NR_PROCESSES 60
#define BYTES (4 * MIB)
#define CHUNKS 64

static struct {
	uint32_t start;
	uint32_t begun[NR_PROCESSES]; /* jobs, or chunks, that are done */
	uint32_t held; /* all permits */
} * shared;

static int map_shared(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

static void wait_for_start(void)
{
	while (!__atomic_load_n(&shared->start, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static int populate_parts(unsigned self)
{
	char *at = map_private(BYTES);

	wait_for_start();
	for (size_t from = 0; from < BYTES; from += BYTES / CHUNKS) {
		if (ktask_populate(at + from, BYTES / CHUNKS, 0))
			return 1;
		__atomic_add_fetch(&shared->begun[self], 1, __ATOMIC_RELAXED);
	}
	return pages_present(at, BYTES) != BYTES / page_bytes();
}

/* In one job, whose caller is never left without a CPU by its helpers. */
static int populate_at_once(unsigned self)
{
	char *at = map_private(BYTES);

	wait_for_start();
	if (ktask_populate(at, BYTES, 0))
		return 1;
	return pages_present(at, BYTES) != BYTES / page_bytes();
}

static int run_processes(void *arg)
{
	int (*func)(unsigned) = (int (*)(unsigned))arg;
	pid_t pids[NR_PROCESSES];
	int status;

	for (unsigned i = 0; i < NR_PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(func(i));
		ktest_check(pids[i] > 0);
	}
	__atomic_store_n(&shared->start, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < NR_PROCESSES; i++) {
		ktest_check(waitpid(pids[i], &status, 0) == pids[i]);
		ktest_check(!status);
	}
	return 0;
}

static void many_small_jobs_each(void **state)
{
	assert_int_equal(
		ktest_in_child_for(run_processes, (void *)populate_parts, 100),
		0);
	for (unsigned i = 0; i < NR_PROCESSES; i++)
		assert_int_equal(shared->begun[i], CHUNKS);
}

static void one_job_each(void **state)
{
	assert_int_equal(ktest_in_child_for(run_processes,
					    (void *)populate_at_once, 100),
			 0);
}

/* ---- nobody waits for the others to end ---- */

static bool all_begun(void)
{
	for (unsigned i = 0; i < NR_PROCESSES; i++)
		if (!__atomic_load_n(&shared->begun[i], __ATOMIC_RELAXED))
			return false;
	return true;
}

static int count_and_nap(void *start, void *end, void *arg)
{
	__atomic_add_fetch(&shared->begun[(uintptr_t)arg], 1, __ATOMIC_RELAXED);
	usleep(2000);
	return 0;
}

/* A job goes on until every other one has done a chunk of its own. */
static int work_until_all_work(unsigned self)
{
	DEFINE_KTASK_CTL(ctl, count_and_nap, (void *)(uintptr_t)self, 1);

	wait_for_start();
	while (!all_begun())
		if (ktask_run(NULL, 16, &ctl))
			return 1;
	return 0;
}

static void each_gets_on_beside_the_others(void **state)
{
	memset(shared, 0, sizeof(*shared));
	assert_int_equal(ktest_in_child_for(run_processes,
					    (void *)work_until_all_work, 100),
			 0);
}

/* ---- nor for a permit ---- */

static _Noreturn void hold_all_permits(void)
{
	struct ktask_limit limits[1] = { KTASK_LIMIT_INIT };

	ktask_limits(limits, 1);
	while (permits_take((uint32_t)gettid()) >= 0 && permits_shared())
		;
	__atomic_store_n(&shared->held, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static void all_end_while_somebody_keeps_every_permit(void **state)
{
	pid_t holder = fork();
	int status;

	if (!holder)
		hold_all_permits();
	memset(shared->begun, 0, sizeof(shared->begun));
	shared->start = 0;
	while (!__atomic_load_n(&shared->held, __ATOMIC_ACQUIRE))
		usleep(1000);
	status = ktest_in_child_for(run_processes, (void *)work_until_all_work,
				    100);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(many_small_jobs_each),
		KTEST(one_job_each),
		KTEST(each_gets_on_beside_the_others),
		KTEST(all_end_while_somebody_keeps_every_permit),
	};

	return cmocka_run_group_tests(tests, map_shared, NULL);
}
