/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside libumt: a subscriber of the service, and what a backend must do for
 * it. A backend is chosen when a subscriber opens and never changes.
 *
 * Locking.  There are three locks, which a thread takes in this order:
 *
 *	P: process_lock (process_api.c)
 *	S: subscriber_lock(): lists of subscribers, and whatever a process has once.
 *	   Held for as long as opening one takes, which may be waiting for umtd.
 *	T: thread_lock(): the threads that the library counts itself, and their
 *	   counts.  Never held for long.
 *
 * A fork takes all three.  No thread can be cancelled while it holds one.  Builds
 * with the address or the thread sanitizer assert the order, and what is said to hold a
 * lock.
 *
 * Of struct umt:
 *
 *	I: set under S before umt_open() returns, constant from then on; the child of a
 *	   fork changes it before it has a second thread
 *	R: the one thread at a time that reads, as umt.h has it
 *	A: read by any thread: by atomic operations
 */
#ifndef UMT_LIB_SUBSCRIBER_H
#define UMT_LIB_SUBSCRIBER_H

#include <stdbool.h>
#include <stdint.h>

#include <umt.h>

#include "common/lock_rank.h"
#include "ring.h"

struct backend;
struct source;

struct umt {
	const struct backend *backend; /* I */
	struct umt *next; /* all open subscribers; S */
	/* I; what it points to is written by any thread, and by the kernel; A */
	struct umt_word *word;
	struct umt_core *cores; /* right behind the word; the same */
	/* Per core: what umt_core_counts() has returned so far.  I; the entries: R */
	struct umt_counts *seen;
	/* Per core, -1 until umt_core_fd() is called.  I; the entries: S, A */
	int *core_fds;
	struct ring *doorbells; /* bpf: per core; I; each opened under S */
	struct ring events; /* bpf; I, R */
	int fd; /* I */
	struct source *source; /* bpf: which program serves it; I */
	unsigned int index; /* bpf: its number there, */
	uint64_t token[2]; /* and the secret that lets our threads use it; I */
	unsigned int flags; /* I */
	bool paused; /* bpf; S */
	int nr_cores; /* I */
};

/* The locks in their order. */
enum { RANK_PROCESS = 1, RANK_SUBSCRIBERS = 2, RANK_THREADS = 4 };

#ifdef RANK_ASSERTS
extern __thread unsigned int umt_locks; /* ranks that this thread holds */
#endif

#define WHY_MAX sizeof(((struct umt_backends *)0)->why[0])

/**
 * struct backend - one way to find out which threads are blocked
 * @id: enum umt_backend
 * @probe: is it available now?  Else writes why not; @note: if it is, by whom or
 *	within which limits
 * @open: make all that @subscriber needs but @next and @seen; under S
 * @close: the opposite; also of a half-opened subscriber; under S
 * @add, @remove: the calling thread; under no lock but P
 * @pause: as umt_pause() and umt_resume(); under S; NULL: -ENOTSUP
 * @next: as umt_next(); under no lock
 * @core_fd: as umt_core_fd(); under S; a negative errno
 * @drain: make the core's descriptor unreadable; under no lock but P
 * @child: after a fork, in the child: as @close, but what the two processes
 *	share stays as it is; the table stays readable; under S and T
 * @forked: then, once, whether there were subscribers or not: what is known of
 *	threads is of the parent's; under S and T; NULL: nothing to do
 */
struct backend {
	int id;
	int (*probe)(char why[WHY_MAX], char note[WHY_MAX]);
	int (*open)(struct umt *subscriber, size_t ring_bytes);
	void (*close)(struct umt *subscriber);
	int (*add)(struct umt *subscriber);
	int (*remove)(struct umt *subscriber);
	int (*pause)(struct umt *subscriber, bool on);
	int (*next)(struct umt *subscriber, struct umt_event *event);
	int (*core_fd)(struct umt *subscriber, int cpu);
	void (*drain)(struct umt *subscriber, int cpu);
	void (*child)(struct umt *subscriber);
	void (*forked)(void);
};

extern const struct backend bpf_backend, perf_backend, explicit_backend;

/*
 * bpf_attach - program_attach(), for the umt command; only with a program that this
 * process has loaded itself
 */
int bpf_attach(struct umt *subscriber, int tid);

/* subscriber_prepare_forks - before the first use of the lock, and before handlers of
 * forks are registered whose lock is taken before it */
void subscriber_prepare_forks(void);

/* S and T. */
void subscriber_lock(void);
void subscriber_unlock(void);
void thread_lock(void);
void thread_unlock(void);

static inline void subscriber_assert_locked(void)
{
	rank_assert_held(umt_locks, RANK_SUBSCRIBERS);
}

static inline void thread_assert_locked(void)
{
	rank_assert_held(umt_locks, RANK_THREADS);
}

/* What a subscriber keeps per core besides the table. */
int subscriber_cores_alloc(struct umt *subscriber, int nr);

/* The descriptor of a core, or a negative number. */
int subscriber_core_fd(const struct umt *subscriber, int cpu);

/* The table is one mapping of so many bytes. */
size_t subscriber_table_bytes(int nr);
void subscriber_unmap(struct umt *subscriber);

#endif /* UMT_LIB_SUBSCRIBER_H */
