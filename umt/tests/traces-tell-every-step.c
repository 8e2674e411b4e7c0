/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A traced subscriber is told each block with its reason, each wakeup and run,
 * in an order that can be; threads and programs made by its threads too, when
 * they are inherited.
 */
#include "support/events.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void collect_events(struct umt *subscriber)
{
	nr_events = 0;
	collect_more(subscriber);
}

static uint32_t get_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static int count_by_reason(uint32_t tid, int kind, int reason)
{
	int i, nr = 0;

	for (i = 0; i < nr_events; i++)
		if (seen_events[i].tid == tid && seen_events[i].kind == kind &&
		    (reason < 0 || seen_events[i].reason == reason))
			nr++;
	return nr;
}

/* What may follow what, for one thread. */
static void assert_order(uint32_t tid)
{
	bool blocked = false, runs = true;
	uint64_t time_ns = 0;
	int i;

	for (i = 0; i < nr_events; i++) {
		const struct umt_event *event = &seen_events[i];

		if (event->tid != tid)
			continue;
		assert_true(event->time_ns >= time_ns);
		time_ns = event->time_ns;
		switch (event->kind) {
		case UMT_BLOCK:
			assert_false(blocked);
			blocked = true;
			runs = false;
			break;
		case UMT_PREEMPT:
			assert_false(blocked);
			runs = false;
			break;
		case UMT_WAKE:
			assert_true(blocked);
			blocked = false;
			break;
		case UMT_RUN:
			/* The wakeup may have been missed. */
			blocked = false;
			runs = true;
			break;
		case UMT_GONE:
			/* It said so itself, running. */
			runs = true;
			break;
		}
	}
	assert_true(runs);
}

static void a_thread_is_followed(void **state)
{
	struct umt *subscriber = subscriber_of(UMT_BPF, UMT_TRACE);
	int i, naps;

	assert_int_equal(umt_thread_add(subscriber), 0);
	naps = nap_often(100, 50, 1000);
	if (naps == 1000)
		ktest_skip("naps are over before they begin here");
	assert_int_equal(umt_thread_remove(subscriber), 0);
	nap_us(100);
	collect_events(subscriber);
	assert_int_equal(seen_events[0].kind, UMT_NEW);
	assert_int_equal(seen_events[0].tid, get_tid());
	assert_int_equal(seen_events[0].detail, getpid());
	/* Some of the waits may be for something else. */
	assert_in_range(count_by_reason(get_tid(), UMT_BLOCK, UMT_WAITING), 25,
			naps);
	assert_int_equal(count_by_reason(get_tid(), UMT_GONE, -1), 1);
	assert_order(get_tid());
	for (i = 0; i < nr_events; i++)
		if (seen_events[i].kind == UMT_BLOCK &&
		    seen_events[i].reason == UMT_WAITING)
			assert_true(seen_events[i].detail ==
				    SYS_clock_nanosleep);
	umt_close(subscriber);
}

/* ---- reasons ---- */

struct blocker {
	struct umt *subscriber;
	void (*wait)(void);
	uint32_t tid;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipe_fds[2], fault_fd;
static char *fault_page;

static void waits_for_lock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void waits_for_pipe(void)
{
	char byte;

	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
}

static void waits_for_page(void)
{
	*(volatile char *)fault_page = 1;
}

static void *run_blocker(void *arg)
{
	struct blocker *it = arg;

	it->tid = get_tid();
	assert_int_equal(umt_thread_add(it->subscriber), 0);
	it->wait();
	assert_int_equal(umt_thread_remove(it->subscriber), 0);
	return NULL;
}

/* The last that was told of the only thread: it is blocked, and why; or -1. */
static int told_reason(struct umt *subscriber)
{
	const struct umt_event *last;

	collect_more(subscriber);
	last = nr_events ? &seen_events[nr_events - 1] : NULL;
	return last && last->kind == UMT_BLOCK ? last->reason : -1;
}

/* A thread that does @wait is blocked for @reason.  On its way there it may be
 * blocked for others: for a page, or until there is memory. */
static void assert_reason(struct umt *subscriber, void (*wait)(void),
			  void (*release)(void), int reason)
{
	struct blocker it = { .subscriber = subscriber, .wait = wait };
	pthread_t thread;

	nr_events = 0;
	pthread_create(&thread, NULL, run_blocker, &it);
	assert_true(holds_soon(told_reason(subscriber) == reason));
	release();
	pthread_join(thread, NULL);
	collect_more(subscriber);
	assert_order(it.tid);
}

static void unlock_mutex(void)
{
	pthread_mutex_unlock(&mutex);
}

static void fill_pipe(void)
{
	char byte = 0;

	assert_int_equal(write(pipe_fds[1], &byte, 1), 1);
}

static void fill_page(void)
{
	struct uffdio_zeropage zero = {
		.range = { (uint64_t)(uintptr_t)fault_page, 4096 }
	};

	assert_int_equal(ioctl(fault_fd, UFFDIO_ZEROPAGE, &zero), 0);
}

static void locks_are_futex(void **state)
{
	struct umt *subscriber = subscriber_of(UMT_BPF, UMT_TRACE);

	pthread_mutex_lock(&mutex);
	assert_reason(subscriber, waits_for_lock, unlock_mutex, UMT_FUTEX);
	umt_close(subscriber);
}

static void pipes_are_other(void **state)
{
	struct umt *subscriber = subscriber_of(UMT_BPF, UMT_TRACE);

	assert_int_equal(pipe(pipe_fds), 0);
	assert_reason(subscriber, waits_for_pipe, fill_pipe, UMT_OTHER);
	umt_close(subscriber);
}

static void page_faults_are_fault(void **state)
{
	struct umt *subscriber = subscriber_of(UMT_BPF, UMT_TRACE);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fault_fd < 0)
		ktest_skip("no userfaultfd: %s", strerror(errno));
	fault_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uint64_t)(uintptr_t)fault_page;
	range.range.len = 4096;
	assert_int_equal(ioctl(fault_fd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(fault_fd, UFFDIO_REGISTER, &range), 0);
	assert_reason(subscriber, waits_for_page, fill_page, UMT_FAULT);
	close(fault_fd);
	umt_close(subscriber);
}

/* ---- children ---- */

static int find_new(int from, uint32_t *tid)
{
	int i;

	for (i = from; i < nr_events; i++)
		if (seen_events[i].kind == UMT_NEW &&
		    seen_events[i].tid != get_tid()) {
			*tid = seen_events[i].tid;
			return i;
		}
	return -1;
}

/* It is counted for a moment less than it is told of. */
static bool has_gone(struct umt *subscriber, uint32_t tid)
{
	collect_more(subscriber);
	return count_by_reason(tid, UMT_GONE, -1) == 1;
}

static void children_are_inherited(void **state)
{
	struct umt *subscriber =
		subscriber_of(UMT_BPF, UMT_TRACE | UMT_INHERIT);
	uint32_t tid = 0;
	pid_t pid;

	assert_int_equal(umt_thread_add(subscriber), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execlp("sh", "sh", "-c", "sleep 0.01; exec sleep 0.02", NULL);
		_exit(1);
	}
	assert_int_equal(ktest_wait_for(pid, 60), 0);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	collect_events(subscriber);
	assert_true(find_new(0, &tid) >= 0);
	assert_int_equal(tid, pid);
	assert_order(get_tid());
	assert_true(holds_soon(has_gone(subscriber, tid)));
	/* The program that it became still sleeps on our account. */
	assert_true(count_by_reason(tid, UMT_BLOCK, UMT_WAITING) >= 1);
	assert_true(find_new(find_new(0, &tid) + 1, &tid) > 0);
	assert_true(holds_soon(has_gone(subscriber, tid)));
	umt_close(subscriber);
}

static void others_are_not(void **state)
{
	struct umt *subscriber = subscriber_of(UMT_BPF, UMT_TRACE);
	uint32_t tid;

	assert_int_equal(umt_thread_add(subscriber), 0);
	assert_int_equal(system("true"), 0);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	collect_events(subscriber);
	assert_int_equal(find_new(0, &tid), -1);
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(a_thread_is_followed), KTEST(locks_are_futex),
	   KTEST(pipes_are_other), KTEST(page_faults_are_fault),
	   KTEST(children_are_inherited), KTEST(others_are_not))
