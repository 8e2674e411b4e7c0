/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls that the kernel does alone and that are only counted, for the report; and
 * process_madvise(), which may be about this process.
 *
 * Why they are left to the kernel (2 CPUs, Linux 6.18, 1 GiB of 4 KiB pages): munlock()
 * takes 33 to 50 ms with one thread and 35 to 46 ms with two, because it walks the
 * pages under the lock of the address space.  shmat() makes no page.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "preload/shim.h"
#include "util/file.h"
#include "util/scoped.h"

/* The kernel reads no more of an array of ranges. */
#define MAX_RW_BYTES 0x7ffff000u

KTASK_API int munlock(const void *addr, size_t len)
{
	SHIM_LEFT(LEFT_MUNLOCK, len);
	return real_munlock(addr, len);
}

/* The size of a segment; @unknown if this process may not ask. */
static size_t find_segment_size(int id, size_t unknown)
{
	struct shmid_ds segment;
	keep_errno();

	return shim_filter_allows() && !shmctl(id, IPC_STAT, &segment)
		       ? segment.shm_segsz
		       : unknown;
}

/* It may come in the place of what is watched. */
static void *attach_segment(int id, const void *addr, int flags)
{
	bool watches = shim_ahead_watches(), remaps = flags & SHM_REMAP, tells;
	size_t len =
		watches || remaps ? find_segment_size(id, SIZE_MAX) : SIZE_MAX;
	void *base;

	if (remaps && watches)
		shim_ahead_stop(addr, len, false);
	tells = shim_ahead_replaces();
	base = real_shmat(id, addr, flags);
	if (tells)
		shim_ahead_replaced(base, base == (void *)-1 ? 0 : len);
	if (remaps && base != (void *)-1)
		shim_ahead_unmapped(base, len);
	return base;
}

KTASK_API void *shmat(int id, const void *addr, int flags)
{
	void *base = attach_segment(id, addr, flags);
	const void *from = __builtin_return_address(0);
	keep_errno();
	size_t len = 0;

	if (base != (void *)-1 && (shim_tells() || shim_prefaults))
		len = find_segment_size(id, 0);
	if (!shim_prefaults)
		SHIM_LEFT(LEFT_SHMAT, len);
	else if (!(flags & SHM_RDONLY))
		shim_prefault(base, len, false, MADE_SEGMENT, from);
	return base;
}

/* How much that takes away is not said. */
KTASK_API int shmdt(const void *addr)
{
	if (shim_prefaults)
		shim_prefault_stop_segment(addr);
	return real_shmdt(addr);
}

/* The special values are those of Linux 6.14. */
static bool is_own(int pidfd)
{
	char path[48];
	uint64_t pid;

	if (pidfd == -10000 || pidfd == -10001)
		return true;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	return file_value(path, "Pid", &pid) && pid == (uint64_t)getpid();
}

/* Since Linux 6.13 a process may say all this of itself. */
static bool can_take(int pidfd, const struct iovec *range, int advice)
{
	struct iovec empty = { range->iov_base, 0 };

	return range->iov_len <= MAX_RW_BYTES && is_own(pidfd) &&
	       !real_process_madvise(pidfd, &empty, 1, advice, 0);
}

/* The kernel reads the array, and refuses a wrong address: so do we. */
static bool copy_range(const struct iovec *ranges, struct iovec *range)
{
	struct iovec local = { range, sizeof(*range) };
	struct iovec remote = { (void *)ranges, sizeof(*range) };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
	       (ssize_t)sizeof(*range);
}

/* Return: bytes that were taken; 0 leaves it to the kernel. */
static size_t maybe_take(int pidfd, const struct iovec *ranges, int advice)
{
	struct iovec range;
	unsigned flags;
	int cancel_state;
	bool taken;

	if (!copy_range(ranges, &range) || range.iov_len < shim_min_bytes)
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	taken = shim_is_discard(advice, &flags) &&
		can_take(pidfd, &range, advice);
	pthread_setcancelstate(cancel_state, NULL);
	if (!taken)
		shim_leave(LEFT_PROCESS_MADVISE, range.iov_len);
	taken = taken &&
		shim_takes_release(SHIM_MADVISE, range.iov_base,
				   range.iov_len) &&
		shim_discard(range.iov_base, range.iov_len, flags);
	return taken ? range.iov_len : 0;
}

/* Takes a single range only: with several the kernel decides how a bad one ends. */
KTASK_API ssize_t process_madvise(int pidfd, const struct iovec *ranges,
				  size_t nr, int advice, unsigned flags)
{
	int saved_errno = errno;
	size_t taken = 0;
	unsigned how;

	if (nr == 1 && !flags &&
	    (shim_is_discard(advice, &how) || shim_tells()) &&
	    SHIM_WANTS(SHIM_MADVISE, SIZE_MAX))
		taken = maybe_take(pidfd, ranges, advice);
	errno = saved_errno;
	if (taken)
		return (ssize_t)taken;
	return real_process_madvise(pidfd, ranges, nr, advice, flags);
}
