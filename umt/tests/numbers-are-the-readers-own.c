/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Events call threads and processes as whoever reads them does, in whatever PID
 * namespace that is, from the first event of a thread to its last; also those
 * that are in a namespace below, and call themselves otherwise.
 */
#include "support/events.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NUMBER_MAX 100

static uint32_t gettid_of_self(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Of all events until now. */
static int count_so_far(const struct umt *subscriber, uint32_t tid, int kind)
{
	collect_more((struct umt *)subscriber);
	return count_events(0, tid, kind);
}

static int process_of(uint32_t tid)
{
	int i;

	for (i = 0; i < nr_events; i++)
		if (seen_events[i].tid == tid && seen_events[i].kind == UMT_NEW)
			return seen_events[i].detail;
	return -1;
}

static void *nap_and_end(void *tid)
{
	*(uint32_t *)tid = gettid_of_self();
	nap_often(1000, 3, 300);
	return NULL;
}

/* Its number as we know it. */
static uint32_t child_that_lives(void)
{
	pid_t pid = fork();

	if (!pid) {
		nap_often(1000, 3, 300);
		_exit(0);
	}
	ktest_check(ktest_wait_for(pid, 60) == 0);
	return (uint32_t)pid;
}

static void *execute_shell(void *unused)
{
	execlp("sh", "sh", "-c", ":", NULL);
	_exit(1);
}

/* Its second thread becomes the first of the new program. */
static uint32_t child_that_executes(void)
{
	pid_t pid = fork();
	pthread_t thread;

	if (!pid) {
		ktest_check(
			!pthread_create(&thread, NULL, execute_shell, NULL));
		pause();
		_exit(1);
	}
	ktest_check(ktest_wait_for(pid, 60) == 0);
	return (uint32_t)pid;
}

static bool is_followed(const struct umt *subscriber, uint32_t tid)
{
	return holds_soon(count_so_far(subscriber, tid, UMT_GONE) == 1) &&
	       count_so_far(subscriber, tid, UMT_NEW) == 1 &&
	       count_so_far(subscriber, tid, UMT_BLOCK) >= 1;
}

static int reads_its_own(void *is_first)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF,
				       .flags = UMT_TRACE | UMT_INHERIT };
	uint32_t self = gettid_of_self();
	uint32_t thread_tid, child, other, below;
	struct umt *subscriber;
	pthread_t thread;
	int i;

	ktest_check(!is_first || self == 1);
	ktest_check(umt_open(&subscriber, &options) == 0);
	ktest_check(umt_thread_add(subscriber) == 0);
	nap_often(1000, 3, 300);
	ktest_check(!pthread_create(&thread, NULL, nap_and_end, &thread_tid));
	pthread_join(thread, NULL);
	child = child_that_lives();
	other = child_that_executes();
	ktest_check(!unshare(CLONE_NEWPID));
	below = child_that_lives();
	ktest_check(umt_thread_remove(subscriber) == 0);

	ktest_check(is_followed(subscriber, self));
	ktest_check(process_of(self) == getpid());
	ktest_check(is_followed(subscriber, thread_tid));
	ktest_check(process_of(thread_tid) == getpid());
	ktest_check(is_followed(subscriber, child));
	ktest_check(process_of(child) == (int)child);
	ktest_check(holds_soon(count_so_far(subscriber, other, UMT_GONE) == 2));
	ktest_check(is_followed(subscriber, below));
	ktest_check(process_of(below) == (int)below);
	/* In a namespace of its own no number is higher. */
	for (i = 0; i < nr_events; i++)
		ktest_check(!is_first || seen_events[i].tid <= NUMBER_MAX);
	umt_close(subscriber);
	return 0;
}

static void need_namespaces(void)
{
	if (getuid())
		ktest_skip("only root has namespaces to give");
	need_own_program();
	if (access("/proc/self/ns/pid", F_OK))
		ktest_skip("no PID namespaces");
}

static void where_the_reader_is_now(void **state)
{
	need_namespaces();
	assert_int_equal(ktest_in_child_for(reads_its_own, NULL, 100), 0);
}

/* The first process there. */
static int in_another(void *unused)
{
	pid_t pid;

	ktest_check(!unshare(CLONE_NEWPID));
	pid = fork();
	if (!pid)
		_exit(reads_its_own(&pid));
	return ktest_wait_for(pid, 90) != 0;
}

static void where_the_reader_is_the_first(void **state)
{
	need_namespaces();
	assert_int_equal(ktest_in_child_for(in_another, NULL, 100), 0);
}

KTEST_MAIN(KTEST(where_the_reader_is_now), KTEST(where_the_reader_is_the_first))
