/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * /dev/ktask: work of the kernel on a program's memory, done by several threads.
 *
 * The calling thread and helper threads of the kernel divide the range, but to
 * unpin, which the calling one does alone; helpers run at the lowest priority,
 * and the caller lends them its own when it waits.
 * Requests work on the memory of the process that makes them, unless they name a
 * descriptor, and need no right but that to open the device; what is pinned
 * counts as locked memory (RLIMIT_MEMLOCK, CAP_IPC_LOCK lifts it), and what a
 * process that is gone has left pinned in a copy of its descriptor counts against
 * the others of its user.
 *
 * With KTASK_MEM_FD a request works on what its descriptor stands for.  The right
 * to that is the right to open it, which the kernel has checked by then:
 *   populate  /proc/PID/mem: the memory of that process.  Whoever may ptrace it
 *             can open this.  After an exec or its end, also in the middle of a
 *             request, the descriptor stands for memory that is gone (-ESRCH).
 *             KTASK_MEM_WRITE needs it open for writing.  KTASK_MEM_AHEAD makes
 *             pages that the process has not asked for: only of private
 *             anonymous memory that it may write, and with its address space
 *             locked for short times.  Not of memory that is shared, locked,
 *             a stack, registered with userfaultfd or mapped with
 *             MAP_NORESERVE, nor a page that was swapped out to a disk: -EFAULT.
 *   clear     a memfd or another file that can be mapped shared and for
 *             writing, without a seal against that: addr is an offset in it.
 *
 * Each request is an ioctl with a struct that begins with its own size, so that
 * it can grow: a kernel that knows less accepts a longer one, of up to a page, if
 * the rest is zero (-E2BIG otherwise), and takes what a shorter one lacks as zero.  Flags that it
 * does not know and reserved fields that are not zero are refused: -EINVAL.
 * Addresses and lengths are in bytes and multiples of the page size; a length
 * of zero does nothing.
 *
 * Errors, besides: -EFAULT for memory that is not mapped or may not be accessed
 * so, or where the answer cannot be written (nothing is pinned then), -EINTR for
 * a process that is being killed, -ENOMEM; -EBADF for a descriptor that is not
 * open, or not open for what is asked, -EINVAL for one that stands for something
 * else; for a file what mmap(2) returns.
 */
#ifndef _UAPI_LINUX_KTASK_H
#define _UAPI_LINUX_KTASK_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KTASK_MEM_WRITE 1u /* as if written to: no page stays shared */
#define KTASK_MEM_FD 2u /* what fd stands for, not the caller's memory */
#define KTASK_MEM_AHEAD 4u /* ordinary memory only; with both others */

/**
 * struct ktask_mem - a range of memory
 * @size: sizeof(struct ktask_mem)
 * @flags: KTASK_MEM_WRITE, KTASK_MEM_AHEAD (populate only), KTASK_MEM_FD (populate
 *         and clear)
 * @addr: of the first byte
 * @len: bytes
 * @max_threads: the caller included; 0: the kernel decides
 * @fd: with KTASK_MEM_FD a descriptor, else 0
 * @failed: set by the request: where it failed because of a page, the lowest
 *          address known to have failed; else 0
 * @threads: set by the request: how many did a part of it, the caller included;
 *           0 if there are none to be told of
 * @reserved: 0
 */
struct ktask_mem {
	__u32 size;
	__u32 flags;
	__u64 addr;
	__u64 len;
	__u32 max_threads;
	__s32 fd;
	__u64 failed;
	__u32 threads;
	__u32 reserved[5];
};

/* Make every page present, as MADV_POPULATE_READ or _WRITE do.  What was
 * populated before an error stays so. */
#define KTASK_IOC_POPULATE _IOWR('k', 0xa0, struct ktask_mem)

/* Pin every page for long, writable, as a device driver does.  All or none.
 * Ranges pinned through one open file must not overlap (-EEXIST).  Closing the
 * last copy of the descriptor unpins. */
#define KTASK_IOC_PIN _IOWR('k', 0xa1, struct ktask_mem)

/* Unpin a range that the same process pinned with the same address and length
 * through the same open file; -ENOENT.  By the calling thread alone: threads
 * is 0. */
#define KTASK_IOC_UNPIN _IOWR('k', 0xa2, struct ktask_mem)

/*
 * Make every byte zero and every page present.  Each page is written to: what
 * another process shares changes for it too.  Meant for memory that is there; a
 * page that is not is cleared twice, by the fault and by the request.  A file is
 * mapped into the caller's address space meanwhile.  After an error any part may
 * have been cleared.
 */
#define KTASK_IOC_CLEAR _IOWR('k', 0xa3, struct ktask_mem)

#endif /* _UAPI_LINUX_KTASK_H */
