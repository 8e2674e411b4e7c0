/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Of two users whose jobs want the one helper that there is, one may have it at
 * any time, and each has it some of the time, as does each of the two jobs that
 * one of them has.
 *
 * By what each of them computes, in a process of its own, for the same times.
 */
#include "ktest.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "lib/slots.h"
#include "lib/table.h"
#include "lib/users.h"

#define FIRST 65526
#define SECOND 65527
/* Within the time for which a demand counts. */
#define NR_TIMES 40
/* Two of the first user, one of the second. */
#define NR_JOBS 3
#define STEP_NS 1000000

static struct {
	uint64_t now_ns;
	uint32_t ready;
	unsigned share[NR_JOBS][NR_TIMES];
} * shared;

static int map_shared(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

static int clean_up(void **state)
{
	if (!geteuid()) {
		unlink(TABLE_DIR "/ktask-slots-65526.0");
		unlink(TABLE_DIR "/ktask-slots-65527.0");
	}
	return munmap(shared, sizeof(*shared));
}

static void ask(int demand, unsigned *share)
{
	uint64_t until_ns;

	for (unsigned i = 0; i < NR_TIMES; i++)
		share[i] = slots_share(demand, 1, shared->now_ns + i * STEP_NS,
				       &until_ns);
}

static int ask_as(unsigned user)
{
	uid_t uid = user ? SECOND : FIRST;
	struct ktask_limit limit;
	int demands[NR_JOBS];

	ktest_check(!setresuid(uid, uid, uid));
	ktask_limits(&limit, 1);
	slots_set_limit(1);
	for (unsigned job = 2 * user; job < 2 + user; job++) {
		demands[job] = slots_demand_begin(1, "test", 1, shared->now_ns);
		ktest_check(demands[job] >= 0);
	}
	kt_add(&shared->ready, 1);
	for (int i = 0; i < 20000 && kt_load(&shared->ready) < 2; i++)
		usleep(1000);
	users_look(shared->now_ns);
	for (unsigned job = 2 * user; job < 2 + user; job++)
		ask(demands[job], shared->share[job]);
	return 0;
}

static pid_t begin(unsigned user)
{
	pid_t pid = fork();

	if (!pid)
		_exit(ask_as(user));
	return pid;
}

static void one_at_a_time(void **state)
{
	pid_t pids[2];
	unsigned nr[NR_JOBS] = { 0 };

	if (geteuid())
		ktest_skip("needs root to become other users");
	shared->now_ns = ktest_now_ns();
	for (unsigned i = 0; i < 2; i++)
		pids[i] = begin(i);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ktest_wait_for(pids[i], 60), 0);
	for (unsigned i = 0; i < NR_TIMES; i++) {
		unsigned sum = 0;

		for (unsigned job = 0; job < NR_JOBS; job++) {
			sum += shared->share[job][i];
			nr[job] += shared->share[job][i];
		}
		/* None: it is the turn of a third, who has nothing to do with
		 * this test. */
		assert_in_range(sum, 0, 1);
	}
	for (unsigned job = 0; job < NR_JOBS; job++)
		assert_in_range(nr[job], 1, NR_TIMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = { KTEST(one_at_a_time) };

	return cmocka_run_group_tests(tests, map_shared, clean_up);
}
