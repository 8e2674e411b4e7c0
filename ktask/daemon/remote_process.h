/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of another process by way of /proc and /dev/ktask: which mappings it has,
 * which pages are present, and how pages are made.
 *
 * A descriptor refers to the address space of the moment when it was opened.  After an
 * exec or the end of the process it refers to nothing, never to another process.
 *
 * Only the watcher reads mappings; any thread may read and make pages.
 */
#ifndef DAEMON_REMOTE_PROCESS_H
#define DAEMON_REMOTE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REMOTE_PAGE ((uintptr_t)4096)
/* Less is not worth a look: as `ktask run` has it. */
#define REMOTE_LEAST_BYTES ((size_t)32 << 20)

struct remote_process {
	pid_t pid;
	int pagemap, memory;
	uint64_t group; /* stands for its control groups */
};

/* How many bytes its control groups leave to the process; UINT64_MAX: they have no limit. */
uint64_t remote_left_in_groups(const struct remote_process *process);

/* Has one of its control groups a CPU quota? */
bool remote_has_cpu_quota(pid_t pid);

/* remote_open - false: it is gone, has its parent's memory (vfork), or we may not */
bool remote_open(struct remote_process *process, pid_t pid);
/* remote_note_group - it may have moved to another one */
void remote_note_group(struct remote_process *process);
void remote_close(struct remote_process *process);

/* remote_is_there - its address space is, and not another one by now */
bool remote_is_there(const struct remote_process *process);

/* remote_same_memory - both are one address space (vfork, clone) */
bool remote_same_memory(const struct remote_process *a,
			const struct remote_process *b);

enum {
	PAGE_PRESENT = 1, /* or swapped out */
	PAGE_OWN = 2, /* it was written, and no child of a fork shares it */
};

/**
 * remote_read_pages - bits of each of @nr pages from @addr on
 *
 * Return: 0 or -errno; -ESRCH: the address space is gone.
 */
int remote_read_pages(const struct remote_process *process, uintptr_t addr,
		      size_t nr, unsigned char *bits);

/**
 * remote_make_pages - make them present as the process's own
 *
 * Return: 0 or -errno; -EFAULT: they are not ordinary memory, -ESRCH.
 */
int remote_make_pages(const struct remote_process *process, uintptr_t addr,
		      size_t nr);

/* remote_node - of a page that is there; -1: there is one node, or nobody knows */
int remote_node(const struct remote_process *process, uintptr_t addr);

/**
 * remote_find_areas - call @found for each area of private anonymous memory that the
 * process may write, in the order of addresses
 *
 * Return: false if the process shall not be served: it is gone, or has the shim of
 * `ktask run`, which sees more.
 */
bool remote_find_areas(const struct remote_process *process,
		       void (*found)(void *arg, uintptr_t start, uintptr_t end),
		       void *arg);

/* remote_init - open /dev/ktask.  Return: NULL, or why it cannot be used. */
const char *remote_init(void);

#endif /* DAEMON_REMOTE_PROCESS_H */
