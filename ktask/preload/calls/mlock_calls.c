/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * mlock, mlock2 and mlockall.
 *
 * mlockall() of what is mapped already is prepared: everything is locked on
 * fault, which makes no page and tells whether the limit allows it, the large
 * mappings are populated in parallel, and then the plain call decides.
 *
 * Left to the kernel: munlock and munlockall, which walk pages under the lock
 * of the address space, and mappings that are made after mlockall(MCL_FUTURE).
 *
 * What can be told from the plain call: adjacent mappings of one segment, parts
 * of which were locked on fault before, may come out as one mapping where they
 * would stay several, since everything is locked on fault in between.
 */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "preload/shim.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

/* A filter may forbid the last step of the work but not the others. */
static bool may_lock(void)
{
	int saved_errno = errno;
	bool may =
		real_knows_advice(MADV_POPULATE_WRITE) && !real_mlock(NULL, 0);

	errno = saved_errno;
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
	return shim_lock(SHIM_MLOCK, base, len);
}

KTASK_API int mlock(const void *addr, size_t len)
{
	if (SHIM_WANTS(SHIM_MLOCK, len) && lock_taken(addr, len))
		return 0;
	return real_mlock(addr, len);
}

KTASK_API int mlock2(const void *addr, size_t len, unsigned flags)
{
	if (!flags && SHIM_WANTS(SHIM_MLOCK, len) && lock_taken(addr, len))
		return 0;
	return real_mlock2(addr, len, flags);
}

/* A line of /proc/self/maps; false at the end of what is large. */
struct range {
	uintptr_t start, end;
	bool readable, writable, shared;
};

static const char *parse_hex(const char *text, uintptr_t *value)
{
	for (*value = 0;; text++) {
		if (*text >= '0' && *text <= '9')
			*value = *value * 16 + (uintptr_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			*value = *value * 16 + (uintptr_t)(*text - 'a' + 10);
		else
			return text;
	}
}

static bool parse_range(const char *line, struct range *range)
{
	line = parse_hex(line, &range->start);
	if (*line != '-')
		return false;
	line = parse_hex(line + 1, &range->end);
	if (*line != ' ')
		return false;
	range->readable = line[1] == 'r';
	range->writable = line[2] == 'w';
	range->shared = line[4] == 's';
	return true;
}

/* As the kernel: what would be copied is copied now, other memory is read. */
static void populate_line(const char *line, void *arg)
{
	struct range range;
	size_t len;
	bool write;

	if (!parse_range(line, &range))
		return;
	len = range.end - range.start;
	write = range.writable && !range.shared;
	if (range.readable && len >= shim_min_bytes)
		shim_populate(SHIM_MLOCK, (void *)range.start, len,
			      write ? 0 : KTASK_POPULATE_READ);
}

/*
 * The list may change while it is read: other threads map and unmap, and so
 * does the first job.  What is missed the plain call finds.
 */
static void populate_all(void)
{
	shim_each_mapping(populate_line, NULL);
}

bool shim_may_lock_all(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct rlimit limit;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur == RLIM_INFINITY)
		return true;
	return !syscall(SYS_capget, &head, data) &&
	       (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &
		CAP_TO_MASK(CAP_IPC_LOCK));
}

static bool takes_all(int flags)
{
	return (flags & MCL_CURRENT) &&
	       !(flags & ~(MCL_CURRENT | MCL_FUTURE)) &&
	       real_knows_advice(MADV_POPULATE_WRITE) && shim_may_lock_all();
}

KTASK_API int mlockall(int flags)
{
	int saved_errno = errno, cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	/* How much there is to lock is not known: it counts as large. */
	if (SHIM_WANTS(SHIM_MLOCK, SIZE_MAX) && takes_all(flags) &&
	    shim_takes(SHIM_MLOCK, SIZE_MAX) &&
	    !real_mlockall(flags | MCL_ONFAULT))
		populate_all();
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
	return real_mlockall(flags);
}
