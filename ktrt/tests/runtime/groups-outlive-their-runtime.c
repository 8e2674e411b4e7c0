/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A group that the program still has when its runtime ends has the code of its tasks
 * then and in the next one, takes no more tasks, and is freed at any time.  In the child
 * of a fork one whose tasks are lost says so.
 */
#include "support/runs.h"

#include <pthread.h>

#include "threads.h"

#define RUNTIMES 20
#define GROUPS 3000

static unsigned ran;
static int pipe_ends[2];

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int fail_late(void *arg)
{
	nap_us(200);
	return 45;
}

static int read_one(void *arg)
{
	char byte;

	return read(pipe_ends[0], &byte, 1) == 1 ? 0 : -EIO;
}

static int spawn_in(struct ktrt_group *group, ktrt_func func)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.group = group;
	return ktrt_spawn_attr(func, NULL, &attr);
}

static struct ktrt_group *new_group(void)
{
	struct ktrt_group *group;

	assert_int_equal(ktrt_group_new(&group), 0);
	return group;
}

static void assert_works(struct ktrt_group *group)
{
	set(ran, 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(spawn_in(group, count_task), 0);
	assert_int_equal(ktrt_group_wait(group), 0);
	assert_int_equal(get(ran), 50);
}

static void *wait_for_it(void *group)
{
	return (void *)(intptr_t)ktrt_group_wait(group);
}

static int code_in_thread(struct ktrt_group *group)
{
	pthread_t thread;
	void *code;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_it, group), 0);
	assert_int_equal(pthread_join(thread, &code), 0);
	return (int)(intptr_t)code;
}

static void codes_are_there_at_once(void **state)
{
	struct ktrt_group *failed, *other, *fine;

	assert_int_equal(ktrt_start(NULL), 0);
	failed = new_group();
	other = new_group();
	fine = new_group();
	assert_int_equal(spawn_in(failed, fail_late), 0);
	assert_int_equal(spawn_in(other, fail_late), 0);
	assert_int_equal(spawn_in(fine, count_task), 0);
	assert_int_equal(code_in_thread(fine), -ESRCH);
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(ktrt_group_wait(failed), 45);
	assert_int_equal(ktrt_group_wait(failed), 0);
	assert_int_equal(code_in_thread(other), 45);
	assert_int_equal(code_in_thread(other), 0);
	assert_int_equal(ktrt_group_wait(fine), 0);
	assert_int_equal(spawn_in(fine, count_task), -ESRCH);
	ktrt_group_free(failed);
	ktrt_group_free(other);
	ktrt_group_free(fine);
}

static void codes_are_there_in_the_next(void **state)
{
	struct ktrt_group *failed, *fine, *cancelled, *other;

	assert_int_equal(ktrt_start(NULL), 0);
	failed = new_group();
	fine = new_group();
	cancelled = new_group();
	assert_int_equal(spawn_in(failed, fail_late), 0);
	assert_int_equal(spawn_in(fine, count_task), 0);
	ktrt_group_cancel(cancelled);
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(ktrt_start(NULL), 0);
	other = new_group();
	assert_true(other != failed && other != fine && other != cancelled);
	assert_works(other);
	assert_int_equal(spawn_in(fine, count_task), -EINVAL);
	assert_int_equal(spawn_in(cancelled, count_task), -EINVAL);
	assert_int_equal(ktrt_group_wait(failed), 45);
	assert_int_equal(ktrt_group_wait(failed), 0);
	assert_int_equal(ktrt_group_wait(fine), 0);
	assert_int_equal(ktrt_group_wait(cancelled), 0);
	ktrt_group_free(failed);
	ktrt_group_free(fine);
	ktrt_group_cancel(cancelled);
	ktrt_group_free(cancelled);
	assert_works(other);
	ktrt_group_free(other);
	assert_int_equal(ktrt_stop(), 0);
}

/* Before, between and after: their memory is used again. */
static void freed_at_any_time(void **state)
{
	static struct ktrt_group *groups[GROUPS];
	struct ktrt_info info = KTRT_INFO_INIT;
	uint64_t bytes = 0;

	for (int i = 0; i < RUNTIMES; i++) {
		assert_int_equal(ktrt_start(NULL), 0);
		if (i % 3 == 2)
			for (int j = 0; j < GROUPS; j++)
				ktrt_group_free(groups[j]);
		for (int j = 0; j < GROUPS; j++)
			groups[j] = new_group();
		assert_int_equal(spawn_in(groups[0], fail_late), 0);
		assert_int_equal(ktrt_info_get(&info), 0);
		if (i == 3)
			bytes = info.memory_bytes;
		if (i > 3)
			assert_true(info.memory_bytes < bytes + (1 << 20));
		if (i % 3 == 2)
			for (int j = 0; j < GROUPS; j++)
				ktrt_group_free(groups[j]);
		assert_int_equal(ktrt_stop(), 0);
		if (i % 3 == 0)
			for (int j = 0; j < GROUPS; j++)
				ktrt_group_free(groups[j]);
	}
}

static int begin_anew(void *arg)
{
	struct ktrt_group *lost = arg, *other;

	ktest_check(ktrt_group_wait(lost) == -ESRCH);
	ktrt_group_free(lost);
	ktest_check(!ktrt_start(NULL));
	ktest_check(ktrt_group_wait(lost) == -ESRCH);
	ktest_check(spawn_in(lost, count_task) == -EINVAL);
	ktrt_group_free(lost);
	ktest_check(!ktrt_group_new(&other));
	ktest_check(!spawn_in(other, count_task));
	ktest_check(!ktrt_group_wait(other));
	ktrt_group_free(other);
	ktest_check(!ktrt_stop());
	return 0;
}

static void lost_ones_say_so(void **state)
{
	struct ktrt_group *group;

	if (KTEST_TSAN)
		ktest_skip("thread sanitizer: no threads in the child");
	assert_int_equal(pipe(pipe_ends), 0);
	assert_int_equal(ktrt_start(NULL), 0);
	group = new_group();
	assert_int_equal(spawn_in(group, read_one), 0);
	if (KTEST_ASAN)
		threads_let_begin();
	assert_int_equal(ktest_in_child(begin_anew, group), 0);
	assert_int_equal(write(pipe_ends[1], "x", 1), 1);
	assert_int_equal(ktrt_group_wait(group), 0);
	ktrt_group_free(group);
	assert_int_equal(ktrt_stop(), 0);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

KTEST_MAIN(KTEST(codes_are_there_at_once), KTEST(codes_are_there_in_the_next),
	   KTEST(freed_at_any_time), KTEST(lost_ones_say_so))
