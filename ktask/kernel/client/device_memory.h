/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory: what /dev/ktask does to a range of memory.
 *
 * Locking:
 *	L: under the lock of struct pins
 *	I: set before memory_run(), or by it before the first chunk; constant from then
 *	K: each chunk writes its own part, read when the job has ended
 *	A: any chunk: compare-and-swap; read by the caller when the job has ended
 */
#ifndef KTASK_KERNEL_MEMORY_H
#define KTASK_KERNEL_MEMORY_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <uapi/linux/ktask.h>

/* What is pinned through one open file. */
struct pins {
	struct mutex lock;
	struct list_head list; /* L */
};

/* One request while it runs. */
struct memory_job {
	unsigned long addr; /* I */
	struct mm_struct *mm; /* another process's; NULL: the caller's; I */
	unsigned int gup_flags; /* I */
	bool ahead; /* ordinary memory only; I */
	struct page **pages; /* pinning; else NULL; I, what it points to K */
	unsigned long failed; /* lowest address that failed; ULONG_MAX; A */
};

/* memory_run - @func and @undo over the range of @request; sets its failed */
int memory_run(struct ktask_mem *request, struct memory_job *job,
	       int (*func)(void *start, void *end, void *arg),
	       void (*undo)(void *start, void *end, void *arg));

/* memory_failed - by a chunk: this address failed */
void memory_failed(struct memory_job *job, unsigned long addr);

/* The requests; the range has been checked. */
int memory_populate(struct ktask_mem *request);
int memory_clear(struct ktask_mem *request);
int memory_pin(struct pins *pins, struct ktask_mem *request);
int memory_unpin(struct pins *pins, struct ktask_mem *request);

/* memory_unpin_all - the file is closed, by whichever process */
void memory_unpin_all(struct pins *pins);

/*
 * remote_mm - the address space that an open /proc/PID/mem stands for, in use
 * until mmput(); @write: the file must be open for writing
 *
 * Return: -EBADF, -EINVAL for another file, -ESRCH if it is gone.
 */
struct mm_struct *remote_mm(int fd, bool write);

/* remote_in_use - by somebody else; two requests at once take each other for that */
bool remote_in_use(const struct mm_struct *mm);

/* remote_put - the end of that use; if it is the last, others free the memory */
void remote_put(struct mm_struct *mm);

/*
 * remote_fault_in - pages from @addr on; how many, 0 for none, or -errno; @ahead:
 * some pages of ordinary memory that no disk has, else -EFAULT
 */
long remote_fault_in(struct mm_struct *mm, unsigned long addr, unsigned long nr,
		     unsigned int gup_flags, bool ahead);

int remote_init(void);

int device_init(void);
void device_exit(void);

#endif /* KTASK_KERNEL_MEMORY_H */
