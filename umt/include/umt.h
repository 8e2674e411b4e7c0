/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * UMT: user-monitored threads.  A process learns which of its threads are
 * blocked in the kernel and on which core, so that it can put another thread
 * there.  This works on a stock kernel.  The kernel's side is an eBPF program, or a
 * substitute where that may not be loaded (umt_info(), "umt info").
 *
 * Words:
 *	subscriber  a runtime or a pool in this process that monitors
 *		threads.  Several may be open; a thread may belong to up to
 *		UMT_MEMBERSHIPS of them.
 *	core	one CPU as the kernel numbers it.
 *	ready	monitored, and running or waiting for a CPU: not blocked.
 *		A preempted thread is ready.
 *	leader	the thread of a subscriber that waits for events.
 *
 * Three forms of the same service:
 *	counts	umt_cores(): a table in memory; one load tells how many
 *		threads are ready on a core
 *	events	umt_fd(), umt_want(), umt_next(): the leader sleeps until no
 *		thread of a core is ready although work is waiting
 *	paper	umt_enable(), umt_thread_ctrl(), umt_core_read(): the interface
 *		of the paper on UMT, a descriptor and two counts per core
 *
 * Counts are never negative and end at zero.  They may be one event behind, so
 * check the whole table now and then by umt_idle(), and after any wait.
 *
 * Each function returns 0 or more, or a negative errno.  Any thread may call
 * them, but only one thread of a subscriber at a time may call umt_next() or
 * umt_core_read().  A signal handler may call none.
 *
 * A structure that begins with its size may be that of an older or a newer
 * header.  Fields that a shorter one lacks are read as zero.  A longer one is
 * accepted if all fields that this library does not know are zero; otherwise,
 * and above 4096 bytes, the call returns -E2BIG.  The library fills a structure
 * as far as its size goes.  Other structures never change.
 *
 * In the child of a fork the subscribers of the parent are closed.  The child
 * opens its own.
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
 * struct umt_core - what is known about one core; a cache line of its own
 *
 * Most programs need only @ready.  The other counts only grow.  Once nothing moves,
 * ready == (wakes + moved_in) - (sleeps + moved_out).
 *
 * Never changes: programs index the table, and the cache line is full.
 */
struct umt_core {
	__s32 ready;
	__u16 reserved[2]; /* of the service, without a meaning here */
	__u64 sleeps; /* threads that blocked here */
	__u64 wakes; /* threads that became ready here */
	__u64 moved_in; /* ready threads that came, or were added */
	__u64 moved_out; /* ready threads that went, or were removed */
	__u64 preempts; /* threads that lost the core but stayed ready */
	__u64 repairs; /* missed events that were corrected later */
	__u64 lost; /* events for which the ring had no room */
} __attribute__((aligned(64)));

enum umt_kind {
	UMT_IDLE = 1, /* the core has no ready thread any more */
	/* the following only with UMT_TRACE */
	UMT_BLOCK, /* a thread blocked; @reason, @detail: system call */
	UMT_WAKE, /* it became ready on @cpu */
	UMT_RUN, /* it got the core */
	UMT_PREEMPT, /* it lost the core but is ready */
	UMT_MOVE, /* it is now ready on @cpu, no longer on @detail */
	UMT_NEW, /* it is monitored from now on; @detail: its process */
	/*
	 * It has ended or is no longer monitored.  Also if it executes a program and
	 * thereby takes the number of its process's first thread: then UMT_NEW and
	 * UMT_RUN with that number follow, perhaps before UMT_GONE of the thread that
	 * had it.
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
 * Never changes: the kernel's side writes this record.  A new kind can use @detail
 * and @reserved.
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
 * struct umt_options - options of umt_open()
 * @size: sizeof(struct umt_options)
 * @flags: UMT_TRACE, UMT_INHERIT
 * @backend: only this one; UMT_ANY: the best that works
 * @ring_bytes: size of the ring of events; 0: 64 KiB, or 4 MiB with UMT_TRACE
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
 * Return: 0, -ENOMEM, -EUSERS, -EINVAL or -E2BIG.  If @options name a backend that does
 * not work here, the errno says why; umt_info() has it in words.
 */
UMT_API int umt_open(struct umt **subscriber,
		     const struct umt_options *options);

/* umt_close - end a subscription; its threads go on unmonitored.  NULL does nothing. */
UMT_API void umt_close(struct umt *subscriber);

/* umt_backend - the backend that serves this subscriber: enum umt_backend */
UMT_API int umt_backend(const struct umt *subscriber);

/**
 * umt_thread_add - monitor the calling thread
 *
 * The thread counts as ready on its core at once.  Monitoring ends with the thread.
 * Return: 0, -EEXIST, -EUSERS (in UMT_MEMBERSHIPS subscribers already) or -ENOMEM.
 */
UMT_API int umt_thread_add(struct umt *subscriber);

/* umt_thread_remove - stop monitoring the calling thread; -ENOENT: it is not monitored */
UMT_API int umt_thread_remove(struct umt *subscriber);

/**
 * umt_pause - see and count nothing until umt_resume()
 *
 * For a subscriber whose threads all sleep.  The program is detached when all its
 * subscribers have paused: those of this process, or, with umtd, those of all its clients.
 * It costs other programs nothing then at their context switches.  Counts do not change
 * meanwhile, unless a thread ends.  If a thread wakes during the pause, it does not count
 * as ready until it removes and adds itself; it may do that at any time.
 *
 * Return: 0; -ENOTSUP: nothing can be detached, because there is another backend or
 * umtd is too old; -EBADF: the program has closed descriptors of the library; other
 * negative errnos: umtd has ended.
 */
UMT_API int umt_pause(struct umt *subscriber);

/* umt_resume - end a pause; 0, or a negative errno: it is still paused.  If umtd has ended
 * meanwhile it stays so: another subscriber must be opened. */
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
 * umt_want - say whether UMT_IDLE events are wanted
 * @wanted: 0 for none, or for instance how many tasks could be started
 *
 * Costs one store.  There is no event for a core that is idle already: call
 * umt_idle() after this.
 */
UMT_API void umt_want(struct umt *subscriber, unsigned int wanted);

/**
 * umt_idle - the next core from @cpu on that has monitored threads of this
 * subscriber, none of them ready; -ENOENT: there is none
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
 * For UMT_EXPLICIT.  With any other backend they do nothing, so that they may stay in
 * the code.  Calls may nest.
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

/* umt_disable - close that subscriber and its descriptors */
UMT_API void umt_disable(void);

/* umt_thread_ctrl - monitor the calling thread (1), or no longer (0) */
UMT_API int umt_thread_ctrl(int on);

/* umt_core_read - read a core's counts, which resets them */
UMT_API int umt_core_read(int cpu, struct umt_counts *counts);

/**
 * struct umt_backends - which backend would be used, and why no better one
 * @size: sizeof(struct umt_backends), set by the caller
 * @why: by enum umt_backend: "" if it works, else one line; [UMT_ANY]: who serves
 *	the one that would be used, or within which limits, or ""
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
