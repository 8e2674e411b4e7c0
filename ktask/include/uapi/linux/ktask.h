/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * /dev/ktask: the kernel works on a program's memory with several threads.
 *
 * The calling thread and helper threads of the kernel divide the range.  Only
 * unpinning is done by the calling thread alone.  Helpers run at the lowest
 * priority; when the caller waits for one, it lends it its own.
 *
 * A request works on the memory of the process that makes it, unless it names a
 * descriptor.  The process needs no right but that to open the device.  Pinned
 * memory counts as locked (RLIMIT_MEMLOCK; CAP_IPC_LOCK lifts the limit).  If a
 * process ends while a copy of its descriptor is open elsewhere, what it pinned
 * stays pinned and counts against the other processes of its user.
 *
 * With KTASK_MEM_FD a request works on what its descriptor stands for.  Whoever
 * could open that may use it; the kernel checked the right when it was opened.
 *   populate  /proc/PID/mem: the memory of that process.  Whoever may ptrace the
 *             process can open this file.  After an exec or its end, also in the
 *             middle of a request, the memory is gone (-ESRCH).  KTASK_MEM_WRITE
 *             needs the file open for writing.  KTASK_MEM_AHEAD makes pages for
 *             which the process has not asked yet.  It works only on private
 *             anonymous memory that the process may write, and locks the address
 *             space for short times only.  -EFAULT for memory that is shared,
 *             locked, a stack, registered with userfaultfd or mapped with
 *             MAP_NORESERVE, and for a page that was swapped out to a disk.
 *   clear     a memfd, or another file that can be mapped shared and for writing
 *             and has no seal against that; addr is an offset in the file.
 *
 * Each request is an ioctl with a struct that begins with its own size, so that
 * the struct can grow.  An older kernel accepts a longer one, of up to a page, if
 * the rest is zero; otherwise it returns -E2BIG.  Fields that a shorter one lacks
 * count as zero.  Unknown flags and reserved fields that are not zero are -EINVAL.
 * Addresses and lengths are in bytes and multiples of the page size.  A length of
 * zero does nothing.
 *
 * Other errors: -EFAULT: memory is not mapped or may not be accessed so, or the
 * answer cannot be written (then nothing is pinned); -EINTR: the process is being
 * killed; -ENOMEM; -EBADF: the descriptor is not open, or not open for this request;
 * -EINVAL: the descriptor stands for something else.  For a file also the errors of
 * mmap(2).
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
 * @failed: set by the request: if it failed because of a page, the lowest
 *          address known to have failed; else 0
 * @threads: set by the request: how many threads did a part of it, the caller
 *           included; 0 if that is not counted
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

/* Make every page present, as MADV_POPULATE_READ or _WRITE do.  After an error the
 * pages that were made stay. */
#define KTASK_IOC_POPULATE _IOWR('k', 0xa0, struct ktask_mem)

/* Pin every page for long and for writing, as a device driver does: all of them or
 * none.  Ranges that are pinned through one open file must not overlap (-EEXIST).
 * Closing the last copy of the descriptor unpins them. */
#define KTASK_IOC_PIN _IOWR('k', 0xa1, struct ktask_mem)

/* Unpin a range that the same process pinned with the same address and length
 * through the same open file; -ENOENT.  By the calling thread alone: threads
 * is 0. */
#define KTASK_IOC_UNPIN _IOWR('k', 0xa2, struct ktask_mem)

/*
 * Make every byte zero and every page present.  Each page is written to, so shared
 * memory changes for other processes too.  This is meant for memory that is present:
 * an absent page is cleared twice, by the fault and by the request.  A file is mapped
 * into the caller's address space during the request.  After an error any part may
 * have been cleared.
 */
#define KTASK_IOC_CLEAR _IOWR('k', 0xa3, struct ktask_mem)

#endif /* _UAPI_LINUX_KTASK_H */
