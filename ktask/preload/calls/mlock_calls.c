/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * mlock, mlock2, mlockall; and munlockall, only to know of it.
 *
 * mlockall(MCL_CURRENT) is prepared.  First everything is locked on fault, which makes
 * no page and shows whether the limit allows it.  Then the large mappings are populated
 * in parallel.  At last the plain call decides.
 *
 * Left to the kernel: munlock and munlockall, which walk pages under the lock
 * of the address space, and mappings that are made after mlockall(MCL_FUTURE).
 *
 * Difference from the plain call: since everything is locked on fault in between,
 * adjacent mappings of one segment, some of which were locked on fault before, may be
 * merged where the plain call would keep them apart.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "preload/shim.h"
#include "util/capability.h"
#include "util/file.h"
#include "util/maps_line.h"
#include "util/scoped.h"

/* A filter may forbid the last step of the work but not the others. */
static bool may_lock(void)
{
	keep_errno();
	bool may =
		real_knows_advice(MADV_POPULATE_WRITE) && !real_mlock(NULL, 0);

	return may;
}

/* The kernel rounds both ends to pages; the library wants the start so. */
static bool lock_taken(const void *addr, size_t len)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t skew_bytes = (uintptr_t)addr & (page_bytes - 1);
	char *base = (char *)addr - skew_bytes;

	if (len > SIZE_MAX - 2 * page_bytes || !may_lock() ||
	    !shim_takes(SHIM_MLOCK, len))
		return false;
	len = (len + skew_bytes + page_bytes - 1) & ~(page_bytes - 1);
	shim_lock_beside(base, len);
	return shim_lock(SHIM_MLOCK, base, len);
}

KTASK_API int mlock(const void *addr, size_t len)
{
	if (SHIM_WANTS(SHIM_MLOCK, len) && lock_taken(addr, len))
		return 0;
	return real_mlock(addr, len);
}

/* Nothing may be made of what is locked when it is touched. */
static void tell_lock(const void *addr, size_t len, unsigned flags)
{
	if (flags & MLOCK_ONFAULT)
		shim_ahead_lock_on_fault(addr, len);
}

KTASK_API int mlock2(const void *addr, size_t len, unsigned flags)
{
	tell_lock(addr, len, flags);
	if (!flags && SHIM_WANTS(SHIM_MLOCK, len) && lock_taken(addr, len))
		return 0;
	return real_mlock2(addr, len, flags);
}

/* As the kernel does: write to pages that would be copied on write, read other memory. */
static void populate_mapping_of(const char *line)
{
	struct maps_line mapping;
	size_t len;

	if (!maps_line_parse(line, &mapping))
		return;
	len = mapping.end - mapping.start;
	if (mapping.readable && len >= shim_min_bytes)
		shim_populate(SHIM_MLOCK, (void *)mapping.start, len,
			      mapping.writable && !mapping.shared
				      ? 0
				      : KTASK_POPULATE_READ);
}

/*
 * The list may change while it is read: other threads map and unmap, and so
 * does the first job.  The plain call finds what is missed here.
 */
static void populate_all(void)
{
	struct file_lines lines;
	const char *line;

	if (!file_lines_open(&lines, "/proc/self/maps"))
		return;
	lines.cuts = true;
	while ((line = file_lines_next(&lines)))
		populate_mapping_of(line);
	file_lines_end(&lines);
}

bool shim_may_lock_all(void)
{
	struct rlimit limit;

	return (!getrlimit(RLIMIT_MEMLOCK, &limit) &&
		limit.rlim_cur == RLIM_INFINITY) ||
	       has_capability(CAP_IPC_LOCK);
}

static bool takes_all(int flags)
{
	return (flags & MCL_CURRENT) &&
	       !(flags & ~(MCL_CURRENT | MCL_FUTURE)) &&
	       real_knows_advice(MADV_POPULATE_WRITE) && shim_may_lock_all();
}

/* A handler that left by siglongjmp() would leave the list open. */
static void prepare_all(int flags)
{
	keep_errno();

	shim_stay_quiet();
	if (takes_all(flags) && shim_takes(SHIM_MLOCK, SIZE_MAX) &&
	    !real_mlockall(flags | MCL_ONFAULT))
		populate_all();
}

KTASK_API int mlockall(int flags)
{
	bool before = shim_ahead_lock_all(flags);
	int rc;

	/* How much there is to lock is not known: it counts as large. */
	if (SHIM_WANTS(SHIM_MLOCK, SIZE_MAX))
		prepare_all(flags);
	rc = real_mlockall(flags);
	if (rc)
		shim_ahead_lock_refused(before);
	return rc;
}

/* Only to know of it. */
KTASK_API int munlockall(void)
{
	shim_ahead_lock_all(0);
	return (int)syscall(SYS_munlockall);
}

void shim_lock_call(long number, const long *args)
{
	if (number == SYS_mlock2)
		tell_lock((const void *)args[0], (size_t)args[1],
			  (unsigned)args[2]);
	else
		shim_ahead_lock_all(number == SYS_mlockall ? (int)args[0] : 0);
}
