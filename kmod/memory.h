/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory: what /dev/ktask does to a range of the caller's memory.
 */
#ifndef KTASK_KMOD_MEMORY_H
#define KTASK_KMOD_MEMORY_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <uapi/linux/ktask.h>

/* What is pinned through one open file. */
struct pins {
	struct mutex lock;
	struct list_head list;
};

/* One request while it runs. */
struct memory_job {
	unsigned long addr;
	unsigned int gup_flags;
	struct page **pages; /* pinning; else NULL */
	unsigned long failed; /* lowest address that failed; ULONG_MAX */
};

/* memory_run - @func and @undo over the range of @request; sets its failed */
int memory_run(struct ktask_mem *request, struct memory_job *job,
	       int (*func)(void *start, void *end, void *arg),
	       void (*undo)(void *start, void *end, void *arg));

/* memory_failed - by a chunk: this address failed */
void memory_failed(struct memory_job *job, unsigned long addr);

/* The requests; the range has been checked. */
int memory_populate(struct ktask_mem *request);
int memory_pin(struct pins *pins, struct ktask_mem *request);
int memory_unpin(struct pins *pins, struct ktask_mem *request);

/* memory_unpin_all - the file is closed, by whichever process */
void memory_unpin_all(struct pins *pins);

int device_init(void);
void device_exit(void);

#endif /* KTASK_KMOD_MEMORY_H */
