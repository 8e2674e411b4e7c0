/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Of two users whose jobs want the one helper that there is, one may have it at
 * any time, and each has it some of the time, as does each of the two jobs that
 * one of them has.
 *
 * By what each of them computes, in a process of its own, for the same times.
 * A user is one, however many registries it has.
 */
#include "ktest.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"
#include "user/limits/users.h"

#define FIRST 65526
#define SECOND 65527
/* Within the time for which a entry counts. */
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
		unlink(REGISTRY_DIR "/ktask-slots-65526.0");
		unlink(REGISTRY_DIR "/ktask-slots-65527.0");
	}
	return munmap(shared, sizeof(*shared));
}

static void ask_shares(int entry, unsigned *share)
{
	uint64_t until_ns;

	for (unsigned i = 0; i < NR_TIMES; i++)
		share[i] = permits_share(entry, 1, shared->now_ns + i * STEP_NS,
					 &until_ns);
}

static int ask_as(unsigned user)
{
	uid_t uid = user ? SECOND : FIRST;
	struct ktask_limit limit = KTASK_LIMIT_INIT;
	int entries[NR_JOBS];

	ktest_check(!setresuid(uid, uid, uid));
	ktask_limits(&limit, 1);
	permits_set_limit(1);
	for (unsigned job = 2 * user; job < 2 + user; job++) {
		entries[job] =
			permits_entry_begin(1, "test", 1, shared->now_ns);
		ktest_check(entries[job] >= 0);
	}
	kt_add(&shared->ready, 1);
	for (int i = 0; i < 20000 && kt_load(&shared->ready) < 2; i++)
		usleep(1000);
	users_refresh(shared->now_ns);
	for (unsigned job = 2 * user; job < 2 + user; job++)
		ask_shares(entries[job], shared->share[job]);
	return 0;
}

static pid_t fork_user(unsigned user)
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
		pids[i] = fork_user(i);
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

/* ---- registries of one user ---- */

#define MANY 12345u

/* A job that wants many, and is never ended; its registry stays. */
static int want_many(void *arg)
{
	struct ktask_limit limit = KTASK_LIMIT_INIT;

	ktest_check(!setresuid(SECOND, SECOND, SECOND));
	ktask_limits(&limit, 1);
	ktest_check(permits_shared());
	ktest_check(permits_entry_begin(MANY, "test", 1, shared->now_ns) >= 0);
	return 0;
}

/* Return: how many others want at least so many; their sum in @sum. */
static unsigned nr_who_want(uint32_t many, uint64_t *sum)
{
	uint32_t wants[USERS_MAX + 1], self, nr;
	unsigned found = 0;

	users_refresh(shared->now_ns);
	nr = users_want(wants, 0, &self);
	*sum = 0;
	for (uint32_t i = 0; i < nr; i++) {
		found += wants[i] >= many;
		*sum += wants[i] >= many ? wants[i] : 0;
	}
	return found;
}

static int see_one(void *arg)
{
	uint64_t sum;

	ktest_check(nr_who_want(MANY, &sum) == 1);
	ktest_check(sum == MANY * *(const unsigned *)arg);
	return 0;
}

static void copy_registry(const char *name)
{
	static char bytes[1 << 18];
	int from = open(REGISTRY_DIR "/ktask-slots-65527.0", O_RDONLY);
	int to = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t len = read(from, bytes, sizeof(bytes));

	assert_int_equal(len, sizeof(struct registry));
	assert_int_equal(write(to, bytes, (size_t)len), len);
	assert_int_equal(fchown(to, SECOND, SECOND), 0);
	close(from);
	close(to);
}

/* Or who has more registries would have more helpers. */
static void a_user_with_many_registries_is_one(void **state)
{
	static const char *const names[] = {
		REGISTRY_DIR "/ktask-slots-65527.1",
		REGISTRY_DIR "/ktask-slots-65527.7",
		REGISTRY_DIR "/ktask-slots-65527.8",
		REGISTRY_DIR "/ktask-slots-65527.10",
		REGISTRY_DIR "/ktask-slots-65527.x",
		REGISTRY_DIR "/ktask-slots-65527.",
	};
	unsigned registries = 1;

	if (geteuid())
		ktest_skip("needs root to become other users");
	shared->now_ns = ktest_now_ns();
	unlink(REGISTRY_DIR "/ktask-slots-65527.0");
	assert_int_equal(ktest_in_child(want_many, NULL), 0);
	assert_int_equal(ktest_in_child(see_one, &registries), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		copy_registry(names[i]);
	/* The names that the library itself would give. */
	registries = 3;
	assert_int_equal(ktest_in_child(see_one, &registries), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
}

/* ---- who becomes another user ---- */

#define FORMER 65525

static int become_another(void *arg)
{
	struct ktask_limit limit = KTASK_LIMIT_INIT;
	uint64_t sum;

	ktest_check(!seteuid(FORMER));
	ktask_limits(&limit, 1);
	ktest_check(permits_shared());
	ktest_check(!seteuid(0) && !setresuid(FIRST, FIRST, FIRST));
	ktest_check(permits_entry_begin(MANY, "test", 1, shared->now_ns) >= 0);
	ktest_check(nr_who_want(MANY, &sum) == 0);
	return 0;
}

/* Or its own jobs, in the registry that it had, would take half of its share. */
static void who_becomes_another_is_still_one(void **state)
{
	int status;

	if (geteuid())
		ktest_skip("needs root to become other users");
	shared->now_ns = ktest_now_ns();
	status = ktest_in_child(become_another, NULL);
	unlink(REGISTRY_DIR "/ktask-slots-65525.0");
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(one_at_a_time),
		KTEST(who_becomes_another_is_still_one),
		KTEST(a_user_with_many_registries_is_one),
	};

	return cmocka_run_group_tests(tests, map_shared, clean_up);
}
