/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that executes a program gets the number of its process's first
 * thread.  Who traces it is told that its old number is gone and that the new
 * one is there, and what the program does from then on.
 */
#include "support/events.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a program that executes another ---- */

static int number_pipe[2];

static void *becomes_sleep(void *unused)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	if (write(number_pipe[1], &tid, sizeof(tid)) == sizeof(tid))
		execlp("sleep", "sleep", "0.2", NULL);
	_exit(1);
}

static void *wait_forever(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

static void by_its_first_thread(void)
{
	becomes_sleep(NULL);
}

static void by_another_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, becomes_sleep, NULL);
	wait_forever(NULL);
}

/* Its first thread has ended before. */
static void by_its_last_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, becomes_sleep, NULL);
	pthread_exit(NULL);
}

/* It is counted for a moment less than it is told of. */
static bool has_gone(struct umt *subscriber, uint32_t tid, int times)
{
	collect_more(subscriber);
	return count_events(0, tid, UMT_GONE) == times;
}

/* Return: the number of the thread that executed the program; @pid, of it. */
static uint32_t follow_exec(struct umt *subscriber, void (*exec)(void),
			    pid_t *pid)
{
	uint32_t tid = 0;

	nr_events = 0;
	assert_int_equal(pipe2(number_pipe, O_CLOEXEC), 0);
	assert_int_equal(umt_thread_add(subscriber), 0);
	fflush(stdout);
	*pid = fork();
	if (!*pid) {
		exec();
		_exit(1);
	}
	assert_int_equal(ktest_wait_for(*pid, 60), 0);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	assert_int_equal(read(number_pipe[0], &tid, sizeof(tid)), sizeof(tid));
	close(number_pipe[0]);
	close(number_pipe[1]);
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	return tid;
}

static void assert_followed(void (*exec)(void))
{
	struct umt *subscriber =
		subscriber_of(UMT_BPF, UMT_TRACE | UMT_INHERIT);
	uint32_t tid, number;
	int gone, born;
	pid_t pid;

	tid = follow_exec(subscriber, exec, &pid);
	number = (uint32_t)pid;
	assert_int_not_equal(tid, pid);
	/* Of the first thread and of this one. */
	assert_true(holds_soon(has_gone(subscriber, number, 2)));
	assert_int_equal(count_events(0, number, UMT_NEW), 2);
	/* The old number is gone, once and for all. */
	gone = find_event(0, tid, UMT_GONE);
	assert_true(gone >= 0);
	assert_int_equal(find_event(gone + 1, tid, UMT_NEW), -1);
	assert_int_equal(find_event(gone + 1, tid, UMT_RUN), -1);
	/* The new one is there, with a thread that has the core. */
	born = find_event(gone, number, UMT_NEW);
	assert_true(born >= 0);
	assert_int_equal(seen_events[born].detail, pid);
	assert_true(find_event(born, number, UMT_RUN) >= 0);
	assert_true(find_event(born, number, UMT_BLOCK) >= 0);
	assert_true(find_event(born, number, UMT_GONE) >= 0);
	umt_close(subscriber);
}

static void not_the_first_thread(void **state)
{
	assert_followed(by_another_thread);
}

static void the_last_thread(void **state)
{
	assert_followed(by_its_last_thread);
}

/* Nothing of it is new. */
static void the_first_thread(void **state)
{
	struct umt *subscriber =
		subscriber_of(UMT_BPF, UMT_TRACE | UMT_INHERIT);
	uint32_t tid;
	pid_t pid;

	tid = follow_exec(subscriber, by_its_first_thread, &pid);
	assert_int_equal(tid, pid);
	assert_true(holds_soon(has_gone(subscriber, tid, 1)));
	assert_int_equal(count_events(0, tid, UMT_NEW), 1);
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(not_the_first_thread), KTEST(the_last_thread),
	   KTEST(the_first_thread))
