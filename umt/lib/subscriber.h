/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside libumt: a subscriber of the service, and what a backend must do for
 * it. A backend is chosen when a subscriber opens and never changes.
 */
#ifndef UMT_LIB_SUBSCRIBER_H
#define UMT_LIB_SUBSCRIBER_H

#include <stdbool.h>
#include <stdint.h>

#include <umt.h>

#include "ring.h"

struct backend;
struct source;

struct umt {
	const struct backend *backend;
	struct umt *next; /* all open subscribers */
	struct umt_word *word;
	struct umt_core *cores; /* right behind the word */
	struct umt_counts *seen; /* per core: told by umt_core_counts() */
	int *core_fds; /* per core, -1 while nobody asked */
	struct ring *doorbells; /* bpf: per core */
	struct ring events; /* bpf */
	int fd;
	struct source *source; /* bpf: which program serves it */
	unsigned int index; /* bpf: its number there, */
	uint64_t token[2]; /* and what proves that it is ours */
	unsigned int flags;
	bool paused; /* bpf */
	int nr_cores;
};

#define WHY_MAX sizeof(((struct umt_backends *)0)->why[0])

/**
 * struct backend - one way to find out which threads are blocked
 * @id: enum umt_backend
 * @probe: is it available now?  Else writes why not; @note: if it is, by whom or
 *	within which limits
 * @open: make all that @subscriber needs but @next and @seen; holds the lock
 * @close: the opposite; also of a half-opened subscriber; holds the lock
 * @add, @remove: the calling thread
 * @pause: as umt_pause() and umt_resume(); holds the lock; NULL: -ENOTSUP
 * @next: as umt_next()
 * @core_fd: as umt_core_fd(); holds the lock; a negative errno
 * @drain: make the core's descriptor unreadable
 * @child: after a fork, in the child: as @close, but what the two processes
 *	share stays as it is; the table stays readable
 * @forked: then, once, whether there were subscribers or not: what is known of
 *	threads is of the parent's; holds the locks; NULL: nothing to do
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

/* For lists of subscribers and whatever a process has once; held for as long as
 * opening a subscriber takes, which may be waiting for umtd. */
void subscriber_lock(void);
void subscriber_unlock(void);

/* For the threads that the library counts itself, and their counts; never held
 * for long, and taken behind the other. */
void thread_lock(void);
void thread_unlock(void);

/* What a subscriber keeps per core besides the table. */
int subscriber_cores_alloc(struct umt *subscriber, int nr);

/* The descriptor of a core, or a negative number. */
int subscriber_core_fd(const struct umt *subscriber, int cpu);

/* The table is one mapping of so many bytes. */
size_t subscriber_table_bytes(int nr);
void subscriber_unmap(struct umt *subscriber);

#endif /* UMT_LIB_SUBSCRIBER_H */
