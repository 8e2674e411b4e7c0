/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * mmap and munmap: which of their calls are taken.  Taken are large ranges, and only
 * flags whose meaning is known here to the last detail.  Everything else is the plain
 * call.  A call that is taken returns the value and the errno that the plain call would
 * have given.
 *
 * Not seen: programs that are linked statically or make system calls
 * themselves (the Go runtime does), and calls inside libc (malloc and free).
 *
 * Behaves badly, if only in time: after mlockall(MCL_FUTURE) the kernel populates a
 * mapping with MAP_POPULATE, and the shim then walks it once more.
 *
 * Difference from the plain call: a private mapping of a file with MAP_LOCKED stays a
 * mapping of its own beside another one, where the kernel would have merged the two.  For
 * memory see locked_neighbours.c.
 *
 * Locking: none.  Any thread notes that the program has used a flag, and none takes it back.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "ops/mapping.h"
#include "preload/shim.h"
#include "util/scoped.h"

/*
 * MAP_GROWSDOWN stays with the kernel, and so does MAP_NONBLOCK, which makes
 * MAP_POPULATE do nothing.
 */
#define HUGE_SIZE_BITS (0x3f << 26)
#define POPULATE_FLAGS                                                \
	(MAP_SHARED_VALIDATE | MAP_FIXED | MAP_FIXED_NOREPLACE |      \
	 MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE | MAP_HUGETLB | \
	 HUGE_SIZE_BITS | MAP_STACK | MAP_DENYWRITE | MAP_EXECUTABLE)
/*
 * If locking is refused the mapping must be undone.  So a mapping that replaces another,
 * or has hugetlb pages (which may round its length), is taken only if locking cannot be
 * refused.
 */
#define LOCKED_FLAGS (POPULATE_FLAGS | MAP_LOCKED)
#define SURE_FLAGS (MAP_FIXED | MAP_HUGETLB)

/* The kernel forces its way into unreadable memory; we cannot. */
static bool takes_populate(int prot, int flags)
{
	if (!(flags & MAP_POPULATE) || (flags & ~POPULATE_FLAGS) ||
	    !(prot & PROT_READ))
		return false;
	/* Before 5.14 memory is touched, which device memory may notice. */
	return (flags & MAP_ANONYMOUS) ||
	       real_knows_advice(MADV_POPULATE_WRITE);
}

/* MAP_POPULATE writes to private writable memory and reads all other. */
static bool populate_writes(int prot, int flags)
{
	return (prot & PROT_WRITE) && (flags & MAP_TYPE) == MAP_PRIVATE;
}

/* As the kernel populates for MAP_POPULATE, which reports no failure either. */
static void populate_plainly(void *addr, size_t len, int prot, int flags)
{
	keep_errno();

	(void)real_madvise(addr, len,
			   populate_writes(prot, flags) ? MADV_POPULATE_WRITE
							: MADV_POPULATE_READ);
}

/* Private memory without a page, at an address that the program chose. */
static bool is_fixed_memory(int flags)
{
	const int other = MAP_POPULATE | MAP_LOCKED | MAP_HUGETLB;

	return flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) &&
	       flags & MAP_ANONYMOUS && (flags & MAP_TYPE) == MAP_PRIVATE &&
	       !(flags & other);
}

/* Must it be joined with memory beside it before it has pages? */
static bool joins_before_pages(const void *addr, size_t len, int flags)
{
	return flags & MAP_POPULATE && is_fixed_memory(flags & ~MAP_POPULATE) &&
	       shim_ahead_adjoins(addr, len);
}

/*
 * For fixed addresses shim_ahead_stop() was called already.  Helpers make no page of found
 * mappings during the call, so the call is kept short: pages are populated after it.
 */
static void *map_new(void *addr, size_t len, int prot, int flags, int fd,
		     int64_t offset)
{
	bool tells = !(flags & MAP_FIXED) && shim_ahead_replaces();
	bool later = (tells || joins_before_pages(addr, len, flags)) &&
		     shim_filter_allows() && takes_populate(prot, flags);
	int how = later ? flags & ~MAP_POPULATE : flags;
	void *base = real_mmap(addr, len, prot, how, fd, offset);

	if (tells)
		shim_ahead_replaced(base, base == MAP_FAILED ? 0 : len);
	if (base == MAP_FAILED)
		return base;
	shim_ahead_mapped(base, len, is_fixed_memory(how));
	if (later)
		populate_plainly(base, len, prot, flags);
	return base;
}

/* A device must not notice that a mapping is tried, so only regular files will do. */
static bool is_file(int fd, size_t len)
{
	struct stat file;

	return !fstat(fd, &file) && S_ISREG(file.st_mode) &&
	       !(len % (size_t)file.st_blksize);
}

/* Neither a limit forbids it nor a filter. */
static bool may_surely_lock(void)
{
	return shim_may_lock_all() && !real_mlock2(NULL, 0, MLOCK_ONFAULT);
}

static bool takes_locked(size_t len, int prot, int flags, int fd)
{
	keep_errno();

	return (flags & MAP_LOCKED) && !(flags & ~LOCKED_FLAGS) &&
	       (prot & PROT_READ) && real_knows_advice(MADV_POPULATE_WRITE) &&
	       ((flags & MAP_ANONYMOUS) || is_file(fd, len)) &&
	       (!(flags & SURE_FLAGS) || may_surely_lock());
}

/*
 * If shim_populate() fails, some pages below the failed one may be missing.  The plain
 * call would have made these.
 */
static void populate_mapping(void *addr, size_t len, int prot, int flags)
{
	unsigned how = populate_writes(prot, flags) ? 0 : KTASK_POPULATE_READ;

	if (!shim_populate(SHIM_MMAP, addr, len, how))
		populate_plainly(addr, len, prot, flags);
}

/*
 * Until the new memory is locked, the kernel would merge it with unlocked private
 * memory beside it.  Once unlocked, the two would become one mapping again, where the
 * plain call leaves two.  So the new memory has another protection until then.
 */
static int prot_apart(int prot, int flags)
{
	bool may_join = (flags & MAP_TYPE) == MAP_PRIVATE &&
			(prot & (PROT_WRITE | PROT_EXEC)) == PROT_WRITE &&
			!(flags & MAP_HUGETLB);

	return may_join ? prot & ~PROT_READ : prot;
}

/* Locking on fault tells whether the limit allows it, and makes no page. */
static bool lock_on_fault(void *base, size_t len, int prot, int flags)
{
	if (real_mlock2(base, len, MLOCK_ONFAULT))
		return false;
	return prot_apart(prot, flags) == prot || !mprotect(base, len, prot);
}

/* Failures after locking on fault are not reported: the plain call does not either. */
static void *map_locked(void *addr, size_t len, int prot, int flags, int fd,
			int64_t offset)
{
	int saved_errno = errno;
	void *base = map_new(addr, len, prot_apart(prot, flags),
			     flags & ~(MAP_LOCKED | MAP_POPULATE), fd, offset);

	if (base == MAP_FAILED)
		return map_new(addr, len, prot, flags, fd, offset);
	if (!lock_on_fault(base, len, prot, flags)) {
		if (!(flags & SURE_FLAGS))
			real_munmap(base, len);
		errno = saved_errno;
		return map_new(addr, len, prot, flags, fd, offset);
	}
	shim_lock_beside(base, len);
	if (!shim_lock(SHIM_MMAP, base, len))
		(void)real_mlock(base, len);
	errno = saved_errno;
	return base;
}

static void *map_populated(void *addr, size_t len, int prot, int flags, int fd,
			   int64_t offset)
{
	void *base =
		map_new(addr, len, prot, flags & ~MAP_POPULATE, fd, offset);

	if (base != MAP_FAILED)
		populate_mapping(base, len, prot, flags);
	return base;
}

/* A forecast only tells of the call. */
static void *map_taken(bool lock, void *addr, size_t len, int prot, int flags,
		       int fd, int64_t offset)
{
	if (!shim_takes(SHIM_MMAP, len))
		return map_new(addr, len, prot, flags, fd, offset);
	return lock ? map_locked(addr, len, prot, flags, fd, offset)
		    : map_populated(addr, len, prot, flags, fd, offset);
}

static void *map_large(void *addr, size_t len, int prot, int flags, int fd,
		       int64_t offset)
{
	bool lock = takes_locked(len, prot, flags, fd);
	bool known = lock || takes_populate(prot, flags);
	void *base = known ? map_taken(lock, addr, len, prot, flags, fd, offset)
			   : map_new(addr, len, prot, flags, fd, offset);

	if (base == MAP_FAILED)
		shim_decline(WHY_REFUSED, 0);
	else if (!known)
		shim_decline(WHY_MAPPING, len);
	return base;
}

static void *map_prefaulted(void *addr, size_t len, int prot, int flags, int fd,
			    int64_t offset, const void *from)
{
	void *base;

	if (flags & MAP_FIXED)
		shim_prefault_stop(addr, len, false);
	shim_prefault_hurry();
	if (flags & (MAP_POPULATE | MAP_LOCKED) && len >= shim_min_bytes &&
	    shim_wants(SHIM_MMAP, len, from))
		return map_large(addr, len, prot, flags, fd, offset);
	base = map_new(addr, len, prot, flags, fd, offset);
	if (base != MAP_FAILED && len >= shim_min_bytes)
		shim_prefault_mapping(base, len, prot, flags, fd, offset, from);
	return base;
}

/* Has the program mapped memory with MAP_NORESERVE?  Allocators do not count, as below. */
static atomic_bool has_unreserved;

static void note_unreserved(int flags, const void *from)
{
	if (flags & MAP_NORESERVE && !shim_is_allocator(from))
		atomic_store_explicit(&has_unreserved, true,
				      memory_order_relaxed);
}

/* What --prefault would have made: see prefault.c. */
static void note_unasked(size_t len, int prot, int flags)
{
	int kind = flags &
		   (MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_GROWSDOWN);

	if (kind == MAP_ANONYMOUS && prot & PROT_WRITE && !shim_busy())
		shim_decline(WHY_UNASKED, len);
}

/*
 * May the mapping be watched?  A program that maps with MAP_NORESERVE may leave most of it
 * untouched.  That does not hold for an allocator: some use the flag for everything.
 */
static bool is_memory(int prot, int flags, const void *from)
{
	const int read_write = PROT_READ | PROT_WRITE;

	if (flags & MAP_NORESERVE && shim_is_allocator(from))
		flags &= ~MAP_NORESERVE;
	return (prot & read_write) == read_write &&
	       (flags & (MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK |
			 MAP_GROWSDOWN | MAP_HUGETLB)) == MAP_ANONYMOUS;
}

/* @base is a large mapping. */
static void tell_of_memory(void *base, size_t len, int prot, int flags,
			   const void *from)
{
	int type = is_memory(prot, flags, from) ? flags & MAP_TYPE : 0;

	if (type == MAP_PRIVATE && len >= shim_ahead_min_bytes) {
		shim_ahead_mapping(base, len, from);
		return;
	}
	shim_ahead_know(base, len);
	if (type == MAP_SHARED && len >= shim_ahead_min_bytes)
		shim_ahead_shared(base, len, from);
	note_unasked(len, prot, flags);
}

static void *map_watched(void *addr, size_t len, int prot, int flags, int fd,
			 int64_t offset, const void *from)
{
	void *base = map_new(addr, len, prot, flags, fd, offset);

	if (base != MAP_FAILED && len >= shim_min_bytes)
		tell_of_memory(base, len, prot, flags, from);
	return base;
}

/* Inlined, so that the return address is the program's. */
static inline __attribute__((always_inline)) void *
do_mmap(void *addr, size_t len, int prot, int flags, int fd, int64_t offset)
{
	if (shim_prefaults)
		return map_prefaulted(addr, len, prot, flags, fd, offset,
				      __builtin_return_address(0));
	note_unreserved(flags, __builtin_return_address(0));
	if (flags & MAP_FIXED && shim_ahead_watches())
		shim_ahead_stop(addr, len, false);
	if (!(flags & (MAP_POPULATE | MAP_LOCKED)))
		return map_watched(addr, len, prot, flags, fd, offset,
				   __builtin_return_address(0));
	if (!SHIM_WANTS(SHIM_MMAP, len))
		return map_new(addr, len, prot, flags, fd, offset);
	return map_large(addr, len, prot, flags, fd, offset);
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

/* Inlined, so that the return address is the program's. */
static inline __attribute__((always_inline)) int do_munmap(void *addr,
							   size_t len)
{
	if (shim_prefaults) {
		shim_prefault_stop(addr, len, false);
		shim_prefault_hurry();
	}
	if (shim_ahead_watches())
		shim_ahead_stop(addr, len, false);
	if (SHIM_WANTS_RELEASE(SHIM_MUNMAP, addr, len) &&
	    shim_takes_release(SHIM_MUNMAP, addr, len) && shim_unmap(addr, len))
		return 0;
	return real_munmap(addr, len);
}

KTASK_API int munmap(void *addr, size_t len)
{
	int error = do_munmap(addr, len);

	if (!error)
		shim_ahead_unmapped(addr, len);
	return error;
}

/* Stop watching.  Return: whether it was watched. */
static bool unwatch_range(void *old, size_t old_len, size_t new_len, int flags,
			  const void *addr)
{
	bool watched;

	if (!shim_ahead_watches())
		return false;
	watched = shim_ahead_stop(old, old_len ? old_len : 1, true);
	if (flags & MREMAP_FIXED)
		shim_ahead_stop(addr, new_len, false);
	return watched;
}

/* A mapping that only becomes shorter is not moved. */
static void stop_remapped(char *old, size_t old_len, size_t new_len, int flags,
			  const void *addr)
{
	if (new_len && new_len <= old_len &&
	    !(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)))
		shim_prefault_stop(old + new_len, old_len - new_len, false);
	else
		shim_prefault_stop(old, old_len ? old_len : 1, false);
	if (flags & MREMAP_FIXED)
		shim_prefault_stop(addr, new_len, false);
	shim_prefault_hurry();
}

/* The list of mappings is a file, which the plain call does not open. */
static bool lists_private_memory(uintptr_t start, size_t len)
{
	keep_errno();

	shim_stay_quiet();
	return mapping_all_private(start, start + len, MAPPING_CHEAP);
}

/*
 * Has a mapping of private memory become large enough to be watched?  The shim did not
 * note its kind, so it asks the kernel, which tells of MAP_NORESERVE only in smaps: to
 * read that takes 14 ms per GiB present.  So nothing is watched that grows in a program
 * that has used the flag.  The kernel is asked last: an allocator may call with its lock
 * held, and a filter may forbid the question.
 */
static bool became_large(const void *base, size_t old_len, size_t new_len,
			 const void *from)
{
	bool asked = shim_ahead_min_bytes < SIZE_MAX &&
		     old_len < shim_ahead_min_bytes &&
		     new_len >= shim_ahead_min_bytes && !has_unreserved &&
		     !shim_busy() && shim_wants(SHIM_AHEAD, new_len, from);

	return asked && lists_private_memory((uintptr_t)base, new_len);
}

static void *move_mapping(void *old, size_t old_len, size_t new_len, int flags,
			  void *addr)
{
	bool tells = !(flags & MREMAP_FIXED) && shim_ahead_replaces();
	void *moved = real_mremap(old, old_len, new_len, flags, addr);

	if (tells)
		shim_ahead_replaced(moved, moved == MAP_FAILED ? 0 : new_len);
	return moved;
}

/* Only to know of it. */
KTASK_API void *mremap(void *old, size_t old_len, size_t new_len, int flags,
		       ...)
{
	void *addr = NULL, *moved;
	int saved_errno = errno;
	bool watched;
	va_list list;

	/* With the other flag it is a hint. */
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
		va_start(list, flags);
		addr = va_arg(list, void *);
		va_end(list);
	}
	if (shim_prefaults)
		stop_remapped(old, old_len, new_len, flags, addr);
	watched = unwatch_range(old, old_len, new_len, flags, addr);
	moved = move_mapping(old, old_len, new_len, flags, addr);
	if (moved == MAP_FAILED && errno == EFAULT &&
	    shim_ahead_rejoin(old, old_len)) {
		errno = saved_errno;
		moved = move_mapping(old, old_len, new_len, flags, addr);
	}
	if (moved == MAP_FAILED)
		return moved;
	shim_ahead_moved(old, old_len, moved, new_len,
			 flags & MREMAP_DONTUNMAP);
	if (flags & MREMAP_DONTUNMAP)
		return moved;
	if (watched ||
	    became_large(moved, old_len, new_len, __builtin_return_address(0)))
		shim_ahead_mapping(moved, new_len, __builtin_return_address(0));
	return moved;
}
