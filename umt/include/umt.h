/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * UMT: user-monitored threads.  A process learns which of its threads are
 * blocked in the kernel and on which core, so that it can put another thread
 * there.  On a stock kernel; the kernel's side is an eBPF program, or a
 * substitute where that may not be loaded (umt_info(), "umt info").
 *
 * Words:
 *	subscriber  who monitors threads in this process: a runtime, a
 *		pool.  Several may be open; a thread may belong to up to
 *		UMT_MEMBERSHIPS of them.
 *	core	one CPU as the kernel numbers it.
 *	ready	monitored, and running or waiting for a CPU: not blocked.
 *		A preempted thread is ready.
 *	leader	the thread of a subscriber that waits for events.
 *
 * Three forms of the same service:
 *	counts	umt_cores(): a table in memory; one load tells how many
 *		threads are ready on a core
 *	events	umt_fd(), umt_want(), umt_next(): the leader sleeps until a
 *		core has nobody ready left while work is waiting
 *	paper	umt_enable(), umt_thread_ctrl(), umt_core_read(): a descriptor
 *		and two counts per core
 *
 * Counts are never negative and end at zero.  They may be one event behind:
 * look at the whole table now and then (umt_idle()), as after any wait.
 *
 * Each function returns 0 or more, or a negative errno.  All may be called from
 * any thread; umt_next() and umt_core_read() by one thread at a time per
 * subscriber.  None may be called from a signal handler.  Structures that begin
 * with their size may be those of an older or a newer header: what a shorter
 * one lacks is read as zero, a longer one is accepted if all that this library
 * does not know is zero (-E2BIG else, or above 4096 bytes), and what is filled
 * is filled as far as the size goes.  Other structures never change.  In the
 * child of a fork the parent's
 * subscribers are closed already; the child opens its own.
 */
#ifndef UMT_H
#define UMT_H

#include <linux/types.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef UMT_API
#define UMT_API __attribute__((visibility("default")))
#endif

#define UMT_MEMBERSHIPS 4

/**
 * struct umt_core - what is known of one core; a cache line of its own
 *
 * @ready is what to look at.  The others only grow, and
 * ready == (wakes + moved_in) - (sleeps + moved_out) once nothing moves.
 *
 * Never changes: programs index the table, and the line is full.
 */
struct umt_core {
	__s32 ready;
	__u16 reserved[2]; /* of the service, without a meaning here */
	__u64 sleeps; /* threads that blocked here */
	__u64 wakes; /* threads that became ready here */
	__u64 moved_in; /* ready threads that came, or were added */
	__u64 moved_out; /* ready threads that went, or were removed */
	__u64 preempts; /* threads that lost the core but stayed ready */
	__u64 repairs; /* events that were missed and made up for */
	__u64 lost; /* events for which there was no room */
} __attribute__((aligned(64)));

enum umt_kind {
	UMT_IDLE = 1, /* the last ready thread of the core is gone */
	/* the following only with UMT_TRACE */
	UMT_BLOCK, /* a thread blocked; @reason, @detail: system call */
	UMT_WAKE, /* it became ready on @cpu */
	UMT_RUN, /* it got the core */
	UMT_PREEMPT, /* it lost the core but is ready */
	UMT_MOVE, /* it is now ready on @cpu, no longer on @detail */
	UMT_NEW, /* it is monitored from now on; @detail: its process */
	/*
	 * It has ended or is no longer monitored; or its number has, for a
	 * thread that executes a program takes that of its process's first
	 * thread: UMT_NEW and UMT_RUN of that number follow, perhaps before
	 * the end of who had it.
	 */
	UMT_GONE,
};

enum umt_reason {
	UMT_OTHER,
	UMT_IO, /* waits for a device or file system */
	UMT_FUTEX, /* waits for another thread */
	UMT_FAULT, /* page fault without I/O wait */
	UMT_WAITING, /* has nothing to do: sleep, poll, epoll, wait */
	UMT_STOPPED, /* SIGSTOP or a debugger */
	UMT_NR_REASONS,
};

/**
 * struct umt_event - something that happened to a thread or a core
 *
 * Never changes: it is a record as the kernel's side writes it.  A new kind has
 * @detail and @reserved to be told more by.
 */
struct umt_event {
	__u64 time_ns; /* CLOCK_MONOTONIC; 0 in UMT_IDLE */
	__u32 tid; /* as the process that opened UMT sees it; 0 in UMT_IDLE */
	__s32 detail;
	__u16 cpu;
	__u8 kind;
	__u8 reason;
	__u32 reserved; /* 0 */
};

enum umt_backend {
	UMT_ANY,
	UMT_BPF, /* eBPF: exact, also queued and preempted threads */
	UMT_PERF, /* perf records: a thread is ready when it runs */
	UMT_EXPLICIT, /* only umt_block_begin() and umt_block_end() */
};

#define UMT_TRACE 1u /* every event, not only UMT_IDLE (UMT_BPF) */
#define UMT_INHERIT \
	2u /* threads and processes made by a monitored thread
			 * are monitored as well (UMT_BPF) */

/**
 * struct umt_options - what umt_open() may be told
 * @size: sizeof(struct umt_options)
 * @flags: UMT_TRACE, UMT_INHERIT
 * @backend: only this one, or the best there is (UMT_ANY)
 * @ring_bytes: room for events not yet read; 0: 64 KiB, or 4 MiB to trace
 */
struct umt_options {
	size_t size;
	unsigned int flags;
	unsigned int backend;
	size_t ring_bytes;
};

struct umt;

/**
 * umt_open - become a subscriber of the service
 * @subscriber: set on success
 * @options: NULL for the default
 *
 * Return: 0, -ENOMEM, -EUSERS, -EINVAL, -E2BIG, or when a backend was asked for
 * that cannot be had why not; see umt_info() for words.
 */
UMT_API int umt_open(struct umt **subscriber,
		     const struct umt_options *options);

/* umt_close - stop; its threads go on unmonitored.  NULL is fine. */
UMT_API void umt_close(struct umt *subscriber);

/* umt_backend - which way this subscriber is served: enum umt_backend */
UMT_API int umt_backend(const struct umt *subscriber);

/**
 * umt_thread_add - monitor the calling thread
 *
 * It counts as ready on its core at once.  Ends by itself with the thread.
 * Return: 0, -EEXIST, -EUSERS (in UMT_MEMBERSHIPS already) or -ENOMEM.
 */
UMT_API int umt_thread_add(struct umt *subscriber);

/* umt_thread_remove - the opposite; -ENOENT when it is not monitored */
UMT_API int umt_thread_remove(struct umt *subscriber);

/**
 * umt_pause - see and count nothing until umt_resume()
 *
 * When all subscribers of a process have paused, its program is taken from the
 * kernel's events, so that it costs other programs nothing.  For a subscriber
 * whose threads all sleep.  Counts stand still.  A thread that went on meanwhile
 * is not known to be ready until it removes and adds itself, which it may do at
 * any time.
 *
 * Return: 0, -ENOTSUP: there is nothing to be taken away (umtd's program, which
 * is everybody's, or another backend); -EBADF: descriptors were closed that are
 * not the program's own.
 */
UMT_API int umt_pause(struct umt *subscriber);

/* umt_resume - the opposite; 0, or a negative errno: it is still paused */
UMT_API int umt_resume(struct umt *subscriber);

/**
 * umt_cores - the table, indexed by CPU, umt_nr_cores() long
 *
 * It is valid until umt_close().  Read with an atomic load.
 */
UMT_API const struct umt_core *umt_cores(const struct umt *subscriber);
UMT_API int umt_nr_cores(const struct umt *subscriber);

/* umt_ready - ready threads of a core: one load */
static inline int umt_ready(const struct umt_core *cores, int cpu)
{
	return __atomic_load_n(&cores[cpu].ready, __ATOMIC_RELAXED);
}

/**
 * umt_want - say whether a core that goes idle shall be told of
 * @wanted: 0, or for instance how many tasks could be started
 *
 * Costs a store.  A core that is idle already is not told of: look with
 * umt_idle() after setting it.
 */
UMT_API void umt_want(struct umt *subscriber, unsigned int wanted);

/**
 * umt_idle - the next core from @cpu on that has monitored threads of this
 * subscriber behind it, none of them ready; -ENOENT when there is none
 */
UMT_API int umt_idle(const struct umt *subscriber, int cpu);

/* umt_fd - the descriptor that polls readable while umt_next() has events */
UMT_API int umt_fd(const struct umt *subscriber);

/* umt_next - take one event; 1, or 0 when there is none */
UMT_API int umt_next(struct umt *subscriber, struct umt_event *event);

/**
 * umt_block_begin - the calling thread is about to wait
 * umt_block_end - it goes on
 *
 * For UMT_EXPLICIT; with every other backend they do nothing, so that they
 * can stand in the code for good.  Calls may nest.
 */
UMT_API void umt_block_begin(void);
UMT_API void umt_block_end(void);

/* How often threads blocked and unblocked on a core since the last read.  Never
 * changes: these are the two counts of the paper. */
struct umt_counts {
	__u64 blocked;
	__u64 unblocked;
};

/**
 * umt_core_fd - a descriptor per core that polls readable while
 * umt_core_counts() has something new; it belongs to the subscriber
 */
UMT_API int umt_core_fd(struct umt *subscriber, int cpu);

/* umt_core_counts - what happened since the last call; never blocks */
UMT_API int umt_core_counts(struct umt *subscriber, int cpu,
			    struct umt_counts *counts);

/**
 * umt_enable - the paper's form: open the process's own subscriber
 * @fds: receives one descriptor per core; may be NULL when @nr is 0
 * @nr: room in @fds
 *
 * Return: number of cores, of which the first @nr were stored, or -errno;
 * -EBUSY when it is enabled.  The descriptors are polled, not read:
 * umt_core_read().
 */
UMT_API int umt_enable(int *fds, int nr);

/* umt_disable - the opposite; the descriptors are closed */
UMT_API void umt_disable(void);

/* umt_thread_ctrl - monitor the calling thread (1), or no longer (0) */
UMT_API int umt_thread_ctrl(int on);

/* umt_core_read - read a core's counts, which resets them */
UMT_API int umt_core_read(int cpu, struct umt_counts *counts);

/**
 * struct umt_backends - which backend would be taken, and why no better one
 * @size: sizeof(struct umt_backends), set by the caller
 * @why: by enum umt_backend: "" where it works, else one line; [UMT_ANY]: who
 *	serves the one that would be taken, or within which limits, or ""
 */
struct umt_backends {
	size_t size;
	int backend;
	char why[4][160];
};

/*
 * umt_info - try the backends here and now; 0, -EINVAL without a size, -E2BIG
 */
UMT_API int umt_info(struct umt_backends *info);

/* umt_backend_name - "bpf", "perf", "explicit"; NULL when there is none */
UMT_API const char *umt_backend_name(int backend);

/* umt_reason_name - "io", "futex", ...; NULL when there is none */
UMT_API const char *umt_reason_name(int reason);

/* umt_version - "MAJOR.MINOR.PATCH" of the library in use */
UMT_API const char *umt_version(void);

#ifdef __cplusplus
}
#endif

#endif /* UMT_H */
