/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fallocate and posix_fallocate on hugetlbfs.
 *
 * The kernel clears page after page under the lock of the file.  The shim makes the
 * pages in parallel through a mapping instead.  Then it makes the plain call, which
 * finds the pages, sets the size and the time, and decides.  1 GiB, two CPUs, Linux
 * 6.18: 88 ms become 48.
 *
 * Others may change the file meanwhile.  So the shim extends the file by allocating its
 * last page, which cannot shorten it, and never truncates it: not even to undo that.
 *
 * Left to the kernel: disks, and tmpfs, which does not clear what it allocates (2 GiB:
 * 0.47 s; through a mapping, by two threads, 0.73).
 *
 * Behaves badly: a file that grows has its new size from the beginning.  If the pool
 * has enough pages but this process may not have them (a control group's limit), the
 * call fails and the file keeps that size.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <ktask/ops.h>

#include "preload/shim.h"
#include "util/file.h"
#include "util/scoped.h"

struct extent {
	int fd;
	int64_t start; /* multiples of the file's page */
	int64_t end;
	int64_t page_bytes;
	bool grows;
};

/* As the plain call rounds: outwards. */
static void round_out(struct extent *extent)
{
	extent->start -= extent->start % extent->page_bytes;
	extent->end += extent->page_bytes - 1;
	extent->end -= extent->end % extent->page_bytes;
}

static bool is_hugetlbfs(int fd, int64_t *page_bytes)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) || (unsigned long)fs.f_type != HUGETLBFS_MAGIC)
		return false;
	*page_bytes = (int64_t)fs.f_bsize;
	return *page_bytes > 0 && !(*page_bytes & (*page_bytes - 1));
}

static bool can_take(struct extent *extent, int mode, int64_t offset,
		     int64_t len)
{
	struct stat file;

	if (mode || offset < 0 || len <= 0 || offset > INT64_MAX / 2 - len ||
	    !is_hugetlbfs(extent->fd, &extent->page_bytes) ||
	    (fcntl(extent->fd, F_GETFL) & O_ACCMODE) != O_RDWR ||
	    fstat(extent->fd, &file))
		return false;
	extent->start = offset;
	extent->end = offset + len;
	extent->grows = extent->end > file.st_size;
	/* Only the call itself can give a file a size between two pages. */
	if (extent->grows && extent->end % extent->page_bytes)
		return false;
	round_out(extent);
	return file_may_have((uint64_t)extent->end);
}

static bool grow_file(const struct extent *extent)
{
	return !extent->grows ||
	       !real_posix_fallocate(extent->fd,
				     extent->end - extent->page_bytes,
				     extent->page_bytes);
}

/*
 * Mapping the file reserves its pages.  If there are too few the mapping fails, and
 * nothing has happened.  The file is mapped for reading only: mapping it for writing
 * would extend even a file that is sealed against growing.  Reading a page of a shared
 * mapping makes the page as well.
 */
static void prepare_pages(const struct extent *extent)
{
	size_t len = (size_t)(extent->end - extent->start);
	void *base = real_mmap(NULL, len, PROT_READ, MAP_SHARED, extent->fd,
			       extent->start);

	if (base == MAP_FAILED)
		return;
	if (grow_file(extent))
		shim_populate(SHIM_FALLOCATE, base, len, KTASK_POPULATE_READ);
	real_munmap(base, len);
}

static inline __attribute__((always_inline)) void
maybe_prepare(int fd, int mode, int64_t offset, int64_t len)
{
	struct extent extent = { .fd = fd };
	keep_errno();

	if (len >= 0 && SHIM_WANTS(SHIM_FALLOCATE, (size_t)len)) {
		if (!can_take(&extent, mode, offset, len))
			shim_leave(LEFT_FALLOCATE, (size_t)len);
		else if (shim_takes(SHIM_FALLOCATE, (size_t)len))
			prepare_pages(&extent);
	}
}

KTASK_API int fallocate(int fd, int mode, off_t offset, off_t len)
{
	maybe_prepare(fd, mode, offset, len);
	return real_fallocate(fd, mode, offset, len);
}

KTASK_API int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
	maybe_prepare(fd, mode, offset, len);
	return real_fallocate(fd, mode, offset, len);
}

KTASK_API int posix_fallocate(int fd, off_t offset, off_t len)
{
	maybe_prepare(fd, 0, offset, len);
	return real_posix_fallocate(fd, offset, len);
}

KTASK_API int posix_fallocate64(int fd, off64_t offset, off64_t len)
{
	maybe_prepare(fd, 0, offset, len);
	return real_posix_fallocate(fd, offset, len);
}
