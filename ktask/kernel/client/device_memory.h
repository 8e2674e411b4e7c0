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

/* The ranges that were pinned through one open file. */
struct pins {
	struct mutex lock;
	struct list_head list; /* L */
};

/* One request while it runs. */
struct memory_job {
	unsigned long addr; /* I */
	struct mm_struct *mm; /* another process's; NULL: the caller's; I */
	unsigned int gup_flags; /* I */
	bool ahead; /* touch ordinary memory only; I */
	struct page *
		*pages; /* that are pinned, or NULL; I, what it points to K */
	unsigned long failed; /* lowest address that failed, or ULONG_MAX; A */
};

/* memory_run - run @func over the range of @request, and @undo over what was done if it
 * fails; sets request->failed */
int memory_run(struct ktask_mem *request, struct memory_job *job,
	       int (*func)(void *start, void *end, void *arg),
	       void (*undo)(void *start, void *end, void *arg));

/* memory_failed - called by a chunk whose work failed at @addr */
void memory_failed(struct memory_job *job, unsigned long addr);

/* The requests of /dev/ktask.  The caller has checked the range. */
int memory_populate(struct ktask_mem *request);
int memory_clear(struct ktask_mem *request);
int memory_pin(struct pins *pins, struct ktask_mem *request);
int memory_unpin(struct pins *pins, struct ktask_mem *request);

/* memory_unpin_all - unpin all that was pinned through a file that is being closed; the
 * process that closes it may be another than the one that pinned */
void memory_unpin_all(struct pins *pins);

/*
 * remote_mm - take a reference to the address space of a process
 * @fd: its open /proc/PID/mem
 * @write: the file must be open for writing
 *
 * Return: the address space, to be given back by remote_put(); -EBADF if @fd is not open
 * in that way, -EINVAL if it is another file, -ESRCH if the address space is gone.
 */
struct mm_struct *remote_mm(int fd, bool write);

/* remote_in_use - does anybody else use @mm, the process itself or another request? */
bool remote_in_use(const struct mm_struct *mm);

/* remote_put - give back what remote_mm() took; a kernel worker frees the memory if
 * nobody else uses it */
void remote_put(struct mm_struct *mm);

/*
 * remote_fault_in - touch up to @nr pages of @mm from @addr on
 * @gup_flags: FOLL_WRITE to touch them for writing
 * @ahead: touch only ordinary memory, at most 64 pages of it, and wait for no disk
 *
 * Return: how many pages were touched; 0: try again; or -errno.  With @ahead -EFAULT, not
 * 0, if the first page is not ordinary or must be read from swap.
 */
long remote_fault_in(struct mm_struct *mm, unsigned long addr, unsigned long nr,
		     unsigned int gup_flags, bool ahead);

int remote_init(void);

int device_init(void);
void device_exit(void);

#endif /* KTASK_KERNEL_MEMORY_H */
