/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper that shall leave and cannot, because it gets no CPU in its chunk,
 * keeps its permit from nobody: another process's helper works in its place, and
 * only one.  A helper that finds no permit takes one as soon as there is one,
 * even if its caller is in a long chunk.
 *
 * All of it with one permit, in a registry of permits that only this test uses.
 */
#define ONE_PERMIT_USER 65529u
#include "support/onepermit.h"
#include "support/work.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SECONDS(n) ((n)*1000000ull)

static struct {
	uint32_t first_helps, second_helps; /* a helper was in a chunk */
	uint32_t over;
	int blocks[2]; /* a pipe that nobody writes to until the end */
} * shared;

static int map_shared(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED || pipe(shared->blocks);
}

static int unmap_shared(void **state)
{
	munmap(shared, sizeof(*shared));
	return remove_registry();
}

/* ---- the permits ---- */

/* Of a thread that lives. */
#define OTHER ((uint32_t)getppid())

static void *take_as_other(void *arg)
{
	*(int *)arg = permits_take(OTHER);
	return NULL;
}

/* By a thread of its own, which keeps it. */
static int taken_by_other(void)
{
	pthread_t thread;
	int permit;

	ktest_check(!pthread_create(&thread, NULL, take_as_other, &permit));
	pthread_join(thread, NULL);
	return permit;
}

static int yield_permits(void *arg)
{
	one_permit();
	ktest_check(permits_take(1) == 0);
	ktest_check(permits_take(OTHER) == -1);
	/* Somebody who has no permit. */
	permits_yield(0, 7);
	ktest_check(permits_take(OTHER) == -1);
	ktest_check(!permits_must_leave(0, 1));

	permits_yield(0, 1);
	ktest_check(permits_used() == 0);
	ktest_check(permits_must_leave(0, 1));
	ktest_check(permits_take(OTHER) == 1);
	ktest_check(!permits_must_leave(1, OTHER));
	ktest_check(permits_take(3) == -1);
	ktest_check(permits_used() == 1);

	/* The first comes back to leave; then one permit is too much. */
	permits_put(0);
	ktest_check(permits_used() == 1);
	ktest_check(permits_must_leave(1, OTHER));
	permits_put(1);
	ktest_check(permits_take(1) == 0);
	ktest_check(!permits_must_leave(0, 1));
	ktest_check(permits_take(OTHER) == -1);
	permits_put(0);
	return 0;
}

static void who_yields_is_replaced_once(void **state)
{
	assert_int_equal(ktest_in_child(yield_permits, NULL), 0);
}

/* Threads end with the permits that they have, as if killed. */
static int die_yielded(void *arg)
{
	one_permit();
	ktest_check(taken_by_other() == 0);
	/* The kernel gave it back: as if it had never been taken. */
	permits_yield(0, OTHER);
	ktest_check(permits_take(1) == 0);
	ktest_check(permits_take(OTHER) == -1);
	permits_put(0);
	return 0;
}

static void the_dead_do_not_yield(void **state)
{
	assert_int_equal(ktest_in_child(die_yielded, NULL), 0);
}

/* Turns that job @entry of two has between @from_ms and @to_ms. */
static unsigned count_turns(int entry, uint64_t start_ns, unsigned from_ms,
			    unsigned to_ms)
{
	uint64_t until_ns;
	unsigned nr = 0;

	for (unsigned ms = from_ms; ms < to_ms; ms++)
		nr += permits_share(entry, 1, start_ns + ms * 1000000,
				    &until_ns);
	return nr;
}

static int speak_for_a_job(void *arg)
{
	uint64_t start_ns = ktest_now_ns();
	int first, second;

	one_permit();
	first = permits_entry_begin(1, "first", 1, start_ns);
	second = permits_entry_begin(1, "second", 1, start_ns);
	ktest_check(first >= 0 && second >= 0);
	ktest_check(count_turns(first, start_ns, 52, 90) == 38);
	permits_entry_touch(second, start_ns + 50000000);
	ktest_check(count_turns(first, start_ns, 52, 90) < 38);
	permits_entry_end(second);
	permits_entry_touch(second, start_ns + 90000000);
	ktest_check(count_turns(first, start_ns, 92, 130) == 38);
	permits_entry_end(first);
	return 0;
}

static void a_helper_that_waits_speaks_for_its_job(void **state)
{
	assert_int_equal(ktest_in_child(speak_for_a_job, NULL), 0);
}

/* ---- jobs ---- */

static bool is_helper(void)
{
	return gettid() != getpid();
}

/* A helper blocks in its first chunk until all is over. */
static int block_helper(void *start, void *end_pos, void *arg)
{
	char byte;

	if (!is_helper()) {
		nap_us(200);
		return __atomic_load_n(&shared->over, __ATOMIC_ACQUIRE)
			       ? -ECANCELED
			       : 0;
	}
	set_flag(&shared->first_helps);
	return read(shared->blocks[0], &byte, 1) < 0 ? -errno : 0;
}

static int nap_until_helped(void *start, void *end_pos, void *arg)
{
	if (is_helper())
		set_flag(&shared->second_helps);
	else
		nap_us(200);
	return __atomic_load_n(&shared->second_helps, __ATOMIC_ACQUIRE)
		       ? -ECANCELED
		       : 0;
}

static int run_until_canceled(ktask_thread_func func)
{
	DEFINE_KTASK_CTL(ctl, func, NULL, 1);

	one_permit();
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktask_ctl_set_chunk_us(&ctl, 1);
	ktask_ctl_set_deadline(&ctl, SECONDS(60) * 1000);
	return ktask_run(NULL, 1ull << 40, &ctl) != -ECANCELED;
}

static pid_t start_job(ktask_thread_func func)
{
	pid_t pid = fork();

	if (!pid)
		_exit(run_until_canceled(func));
	return pid;
}

static int two_jobs(void *arg)
{
	pid_t first = start_job(block_helper), second;
	int second_status = -1;

	if (wait_for_flag(&shared->first_helps)) {
		second = start_job(nap_until_helped);
		second_status = child_status(second);
	}
	set_flag(&shared->over);
	ktest_check(write(shared->blocks[1], "xx", 2) == 2);
	ktest_check(!child_status(first));
	ktest_check(!second_status);
	ktest_check(shared->second_helps);
	return 0;
}

static void a_second_job_does_not_wait_for_a_blocked_helper(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child_for(two_jobs, NULL, 100), 0);
}

/* The caller's one chunk lasts until a helper is in the other one. */
static int meet_helper(void *start, void *end_pos, void *arg)
{
	if (is_helper())
		set_flag(arg);
	return wait_for_flag_us(arg, SECONDS(60)) ? 0 : -ETIME;
}

static uint32_t permit_is_taken, permit_is_free;

static void *take_and_give(void *arg)
{
	ktest_check(permits_take(1) == 0);
	set_flag(&permit_is_taken);
	/* By then the helper has been refused. */
	nap_us(20000);
	set_flag(&permit_is_free);
	permits_put(0);
	return NULL;
}

static int late_permit(void *arg)
{
	uint32_t met = 0;
	DEFINE_KTASK_CTL(ctl, meet_helper, &met, 1);
	pthread_t thread;

	one_permit();
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktest_check(!pthread_create(&thread, NULL, take_and_give, NULL));
	ktest_check(wait_for_flag(&permit_is_taken));
	ktest_check(!ktask_run(NULL, 2, &ctl));
	ktest_check(permit_is_free);
	pthread_join(thread, NULL);
	return 0;
}

static void a_helper_waits_for_its_permit_alone(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child_for(late_permit, NULL, 100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(who_yields_is_replaced_once),
		KTEST(the_dead_do_not_yield),
		KTEST(a_helper_that_waits_speaks_for_its_job),
		KTEST(a_second_job_does_not_wait_for_a_blocked_helper),
		KTEST(a_helper_waits_for_its_permit_alone),
	};

	return cmocka_run_group_tests(tests, map_shared, unmap_shared);
}
