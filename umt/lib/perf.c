/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The backend for processes without rights: for each thread the kernel writes the
 * context switches into a buffer.  A thread of the library reads the buffers and keeps
 * the counts.
 *
 * It cannot know that a woken thread waits for a CPU.  A thread counts as ready when it
 * runs again, as in the paper.  While it is preempted it counts as ready on the core
 * that it last ran on.
 *
 * Behaves badly: every block and unblock wakes the library's thread, on the same cores.
 * The kernel allows each user 516 KiB of buffers per CPU (kernel.perf_event_mlock_kb).  A
 * thread needs 8 KiB; when they are used up, adding a thread is refused.  When a buffer
 * is full its newest events are lost: once it is read, /proc says how the thread is.
 *
 * Locking: soft.h.  Buffers are written by the kernel and read under T; positions in
 * them are read and written by atomic operations.
 *
 *	T: under thread_lock()
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/proc_stat.h"
#include "rights.h"
#include "soft.h"

#define EVENTS_MAX 32

static int watch_thread(struct soft_thread *thread);
static void unwatch_thread(struct soft_thread *thread);

static struct soft_set watched_threads = { .begin = watch_thread,
					   .end = unwatch_thread };
static int epoll_fd = -1; /* T */
static pid_t server_pid; /* the process that has the server; T */

/* What the kernel writes for us: a switch, and the CPU behind it. */
struct switched {
	struct perf_event_header header;
	uint32_t cpu;
	uint32_t reserved;
};

/* ---- reading a thread's buffer ---- */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Copies bytes, because a record may wrap around at the end of the buffer. */
static void copy_out(const struct soft_thread *thread, uint64_t at, void *to,
		     size_t size)
{
	size_t page = page_bytes();
	const char *data = (const char *)thread->buffer + page;
	size_t i;

	for (i = 0; i < size; i++)
		((char *)to)[i] = data[(at + i) & (page - 1)];
}

static void count_for_all(struct soft_thread *thread, size_t offset)
{
	int i;

	for (i = 0; i < thread->nr; i++) {
		struct umt *subscriber = thread->subscriber[i];
		int cpu = soft_core(subscriber, thread->cpu);
		char *core = (char *)&subscriber->cores[cpu];

		__atomic_fetch_add((__u64 *)(core + offset), 1,
				   __ATOMIC_RELAXED);
	}
}

static void apply_record(struct soft_thread *thread, const struct switched *it)
{
	if (it->header.type == PERF_RECORD_LOST)
		count_for_all(thread, offsetof(struct umt_core, lost));
	if (it->header.type != PERF_RECORD_SWITCH)
		return;
	if (!(it->header.misc & PERF_RECORD_MISC_SWITCH_OUT))
		soft_ready(thread, (int)it->cpu);
	else if (!(it->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT))
		soft_blocked(thread);
	else
		count_for_all(thread, offsetof(struct umt_core, preempts));
}

/* A buffer with less room than this may be full: the kernel wants 48 bytes, for a switch
 * and the number of lost ones. */
#define FULL_BELOW 64

/* The letter that /proc has for the thread's state, and its CPU.  false: there is no
 * /proc, or the thread is gone. */
static bool read_state(const struct soft_thread *thread, char *state, int *cpu)
{
	char path[64], line[512];
	const char *field;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[got < 0 ? 0 : got] = '\0';
	field = proc_stat_field(line, PROC_STAT_CPU);
	*cpu = field ? atoi(field) : thread->cpu;
	*state = proc_stat_state(line);
	return *state;
}

/* Its newest switches may have been lost, and it may sleep for ever now. */
static void correct_count(struct soft_thread *thread)
{
	char state;
	int cpu;

	if (!read_state(thread, &state, &cpu))
		return;
	if (state == 'R')
		soft_ready(thread, cpu);
	else
		soft_blocked(thread);
}

static void drain_buffer(struct soft_thread *thread)
{
	struct perf_event_mmap_page *page = thread->buffer;
	uint64_t tail = page->data_tail, at = tail; /* only we write it */
	uint64_t end = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	thread_assert_locked();
	while (at < end) {
		struct switched it = { 0 };

		copy_out(thread, at, &it, sizeof(it));
		apply_record(thread, &it);
		at += it.header.size;
	}
	/* From here on switches are recorded.  Before, the buffer may have been filled up
	 * while it was read. */
	__atomic_store_n(&page->data_tail, at, __ATOMIC_SEQ_CST);
	end = __atomic_load_n(&page->data_head, __ATOMIC_SEQ_CST);
	if (end - tail + FULL_BELOW > page_bytes())
		correct_count(thread);
}

/* ---- the thread that reads them all ---- */

static struct soft_thread *by_serial(uint64_t serial)
{
	struct soft_thread *thread;

	thread_assert_locked();
	for (thread = watched_threads.threads; thread; thread = thread->next)
		if (thread->serial == serial)
			return thread;
	return NULL;
}

/*
 * The thread may be gone by now, and another one may have the same descriptor.  So events
 * name threads by serial numbers.  The kernel reports EPOLLHUP also for a buffer that is
 * no longer mapped.
 */
static void serve_event(const struct epoll_event *event)
{
	struct soft_thread *thread = by_serial(event->data.u64);

	if (!thread)
		return;
	drain_buffer(thread);
	/* It ended without the C library's knowledge. */
	if (event->events & EPOLLHUP)
		soft_forget(thread);
}

/*
 * The program has closed the descriptor that the server waits for.  The next subscriber
 * starts another server.
 */
static void end_server(int fd)
{
	thread_lock();
	if (epoll_fd == fd)
		epoll_fd = -1;
	thread_unlock();
}

static void *serve_events(void *arg)
{
	struct epoll_event events[EVENTS_MAX];
	int fd = (int)(intptr_t)arg;
	int i, nr;

	for (;;) {
		nr = epoll_wait(fd, events, EVENTS_MAX, -1);
		if (nr < 0 && errno != EINTR)
			break;
		thread_lock();
		for (i = 0; i < nr; i++)
			serve_event(&events[i]);
		thread_unlock();
	}
	end_server(fd);
	return NULL;
}

/* The server never ends.  It sleeps while there is nothing to read. */
static int start_server(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	thread_assert_locked();
	if (epoll_fd >= 0 && server_pid == getpid())
		return 0;
	/* The descriptor is that of the parent: the child was made without fork handlers. */
	if (epoll_fd >= 0) {
		soft_forget_all(&watched_threads);
		close(epoll_fd);
	}
	server_pid = getpid();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		return -errno;
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attr, serve_events,
			       (void *)(intptr_t)epoll_fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (error) {
		close(epoll_fd);
		epoll_fd = -1;
	}
	return -error;
}

/* ---- a thread's buffer ---- */

/* For the calling thread.  It excludes the kernel, so that no right is needed. */
static int open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.context_switch = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int map_event(struct soft_thread *thread)
{
	void *buffer = mmap(NULL, 2 * page_bytes(), PROT_READ | PROT_WRITE,
			    MAP_SHARED, thread->fd, 0);

	if (buffer == MAP_FAILED)
		return -errno;
	thread->buffer = buffer;
	return 0;
}

/* The child of a fork has the descriptors, but not the buffers. */
static void unwatch_thread(struct soft_thread *thread)
{
	thread_assert_locked();
	if (thread->buffer && server_pid == getpid())
		munmap(thread->buffer, 2 * page_bytes());
	if (thread->fd >= 0)
		close(thread->fd);
	thread->buffer = NULL;
	thread->fd = -1;
}

/* The number that /proc has for the calling thread: that of its own namespace, which may
 * be an outer one.  0: there is no /proc. */
static pid_t read_tid(void)
{
	char name[64];
	ssize_t got = readlink("/proc/thread-self", name, sizeof(name) - 1);
	const char *slash;

	name[got < 0 ? 0 : got] = '\0';
	slash = strrchr(name, '/');
	return slash ? atoi(slash + 1) : 0;
}

static int watch_thread(struct soft_thread *thread)
{
	static uint64_t last_serial; /* T */
	struct epoll_event event = { .events = EPOLLIN };
	int error;

	thread_assert_locked();
	thread->tid = read_tid();
	thread->fd = open_event();
	if (thread->fd < 0)
		return thread->fd;
	error = map_event(thread);
	event.data.u64 = thread->serial = ++last_serial;
	if (!error && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, thread->fd, &event))
		error = -errno;
	if (error)
		unwatch_thread(thread);
	return error;
}

/* ---- the backend ---- */

static int read_int(const char *path)
{
	FILE *file = fopen(path, "re");
	int value = -1;

	if (file && fscanf(file, "%d", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

/* Root's locked memory is not limited. */
static void note_limit(char note[WHY_MAX])
{
	int kib = read_int("/proc/sys/kernel/perf_event_mlock_kb");

	if (kib > 0 && !rights_of_root())
		snprintf(note, WHY_MAX,
			 "room for about %d threads of this user",
			 kib * (int)sysconf(_SC_NPROCESSORS_ONLN) /
				 (2 * (int)(page_bytes() / 1024)));
}

static int probe_perf(char why[WHY_MAX], char note[WHY_MAX])
{
	int fd = open_event();

	if (fd < 0) {
		if (fd == -ENOSYS)
			snprintf(why, WHY_MAX,
				 "perf events: there is no perf_event_open(2) "
				 "(CONFIG_PERF_EVENTS, or a sandbox hides it)");
		else
			snprintf(why, WHY_MAX, "perf events: %s%s",
				 strerror(-fd),
				 fd == -EACCES || fd == -EPERM
					 ? " (kernel.perf_event_paranoid)"
					 : "");
		return fd;
	}
	close(fd);
	note_limit(note);
	return 0;
}

static int perf_open(struct umt *subscriber, size_t ring_bytes)
{
	int error = open_event();

	if (error < 0)
		return error;
	close(error);
	thread_lock();
	error = start_server();
	thread_unlock();
	return error ? error : soft_open(subscriber);
}

static void perf_close(struct umt *subscriber)
{
	soft_close(&watched_threads, subscriber);
}

static int perf_add(struct umt *subscriber)
{
	return soft_add(&watched_threads, subscriber);
}

/* It runs: what the buffer still holds is older than that. */
static int perf_remove(struct umt *subscriber)
{
	struct soft_thread *self = soft_self(&watched_threads);

	thread_lock();
	if (self) {
		drain_buffer(self);
		soft_ready(self, sched_getcpu());
	}
	thread_unlock();
	return soft_remove(&watched_threads, subscriber);
}

/*
 * The server is the parent's; the first subscriber of the child starts another.
 */
static void perf_forked(void)
{
	soft_forget_all(&watched_threads);
	if (epoll_fd >= 0)
		close(epoll_fd);
	epoll_fd = -1;
}

const struct backend perf_backend = {
	.id = UMT_PERF,
	.probe = probe_perf,
	.open = perf_open,
	.close = perf_close,
	.add = perf_add,
	.remove = perf_remove,
	.next = soft_next,
	.core_fd = soft_core_fd,
	.drain = soft_drain,
	.child = soft_child,
	.forked = perf_forked,
};
