/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Large memset and memcpy, which stores/stores.c asks for by name.
 *
 * Nothing is known of the memory but what the program says: a wrong address
 * faults, if in a helper.  So only what lies in one piece is looked at first:
 * whether both ends are mapped.  A hole between them kills the program, as it
 * would have.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "shim.h"

KTASK_API size_t shim_store_min = SIZE_MAX;

KTASK_API bool shim_store(void *dst, const void *src, int byte, size_t len,
			  const void *from);

static bool is_mapped(const void *at)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char there;

	return !mincore((void *)((uintptr_t)at & ~(page - 1)), page, &there);
}

static bool ends_mapped(const void *at, size_t len)
{
	return is_mapped(at) && is_mapped((const char *)at + len - 1);
}

bool shim_store(void *dst, const void *src, int byte, size_t len,
		const void *from)
{
	int saved_errno = errno;
	bool wanted = shim_wants(SHIM_STORES, len, from) &&
		      ends_mapped(dst, len) && (!src || ends_mapped(src, len));

	errno = saved_errno;
	if (!wanted || !shim_takes(SHIM_STORES, len))
		return false;
	return src ? shim_copy(dst, src, len) : shim_fill(dst, byte, len);
}
