/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The libc entry points that programs call, and which of their calls are
 * taken: large ranges, and only the forms whose plain meaning is known here to
 * the last detail.  Everything else is the plain call.  What is taken ends with
 * the return value and errno that the plain call would have given: where the
 * parallel part fails, the plain call is made after it and decides.
 *
 * Not seen: programs that are linked statically or make system calls
 * themselves (the Go runtime does), and calls inside libc.
 *
 * Behaves badly where an allocator populates a large range while it holds its
 * own lock: the first job starts threads, and that allocates.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "shim.h"

/*
 * MAP_LOCKED and MAP_GROWSDOWN stay with the kernel, and so does MAP_NONBLOCK,
 * which makes MAP_POPULATE do nothing.
 */
#define HUGE_SIZE_BITS (0x3f << 26)
#define KNOWN_FLAGS                                                   \
	(MAP_SHARED_VALIDATE | MAP_FIXED | MAP_FIXED_NOREPLACE |      \
	 MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE | MAP_HUGETLB | \
	 HUGE_SIZE_BITS | MAP_STACK | MAP_DENYWRITE | MAP_EXECUTABLE)

/* An empty range: the kernel checks the advice and does nothing. */
static bool kernel_knows(int advice)
{
	int saved_errno = errno;
	int rc = real_madvise(NULL, 0, advice);

	errno = saved_errno;
	return rc == 0;
}

static bool takes_mmap(size_t len, int prot, int flags)
{
	if (!(flags & MAP_POPULATE) || (flags & ~KNOWN_FLAGS))
		return false;
	/* The kernel forces its way into unreadable memory; we cannot. */
	if (!(prot & PROT_READ) || !shim_wants(SHIM_MMAP, len))
		return false;
	/* Before 5.14 memory is touched, which device memory may notice. */
	return (flags & MAP_ANONYMOUS) || kernel_knows(MADV_POPULATE_WRITE);
}

/* MAP_POPULATE writes to private writable memory and reads all other. */
static void populate_mapping(void *addr, size_t len, int prot, int flags)
{
	bool write = (prot & PROT_WRITE) && (flags & MAP_TYPE) == MAP_PRIVATE;
	int saved_errno = errno;

	if (shim_populate(SHIM_MMAP, addr, len,
			  write ? 0 : KTASK_POPULATE_READ))
		return;
	/*
	 * Other threads may have met the obstacle before the pages in front of
	 * it were made.  The plain call would have made those; its own failure
	 * goes unreported as well.
	 */
	(void)real_madvise(addr, len,
			   write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	errno = saved_errno;
}

static void *do_mmap(void *addr, size_t len, int prot, int flags, int fd,
		     int64_t offset)
{
	void *base;

	if (!takes_mmap(len, prot, flags))
		return real_mmap(addr, len, prot, flags, fd, offset);
	base = real_mmap(addr, len, prot, flags & ~MAP_POPULATE, fd, offset);
	if (base != MAP_FAILED)
		populate_mapping(base, len, prot, flags);
	return base;
}

KTASK_API void *mmap(void *addr, size_t len, int prot, int flags, int fd,
		     off_t offset)
{
	return do_mmap(addr, len, prot, flags, fd, offset);
}

KTASK_API void *mmap64(void *addr, size_t len, int prot, int flags, int fd,
		       off64_t offset)
{
	return do_mmap(addr, len, prot, flags, fd, offset);
}

KTASK_API int madvise(void *addr, size_t len, int advice)
{
	bool populates =
		advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE;

	if (populates && shim_wants(SHIM_MADVISE, len) &&
	    kernel_knows(advice) &&
	    shim_populate(SHIM_MADVISE, addr, len,
			  advice == MADV_POPULATE_READ ? KTASK_POPULATE_READ
						       : 0))
		return 0;
	return real_madvise(addr, len, advice);
}

/* The kernel rounds both ends to pages; the library wants the start so. */
static bool lock_taken(const void *addr, size_t len)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t skew_bytes = (uintptr_t)addr & (page_bytes - 1);
	char *base = (char *)addr - skew_bytes;

	if (len > SIZE_MAX - 2 * page_bytes || !shim_wants(SHIM_MLOCK, len) ||
	    !kernel_knows(MADV_POPULATE_WRITE))
		return false;
	len = (len + skew_bytes + page_bytes - 1) & ~(page_bytes - 1);
	return shim_lock(base, len);
}

KTASK_API int mlock(const void *addr, size_t len)
{
	return lock_taken(addr, len) ? 0 : real_mlock(addr, len);
}

KTASK_API int mlock2(const void *addr, size_t len, unsigned flags)
{
	if (!flags && lock_taken(addr, len))
		return 0;
	return real_mlock2(addr, len, flags);
}
