/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See guarded.h. */
#include <sys/mman.h>
#include <unistd.h>

#include "core/deps.h"
#include "user/limits/guarded.h"

static size_t in_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

/* All of it: the memory in whole pages, and the guards before and behind. */
static size_t guarded_bytes(size_t bytes)
{
	return in_pages(bytes) + 2 * GUARDED_BYTES;
}

/*
 * The memory could not be mapped: unmap the guards.  The kernel may already have unmapped
 * the reserved part between them, and another thread may have mapped memory there.  So
 * leave that part alone; if it is still reserved, it costs no memory.
 */
static void unmap_guards(char *reserved, size_t bytes)
{
	munmap(reserved, GUARDED_BYTES);
	munmap(reserved + GUARDED_BYTES + in_pages(bytes), GUARDED_BYTES);
}

/* First all of it is reserved, then the memory mapped in its middle, so that no
 * other mapping can come in between. */
void *guarded_map(int fd, size_t bytes)
{
	char *reserved = mmap(NULL, guarded_bytes(bytes), PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *map;

	if (reserved == MAP_FAILED)
		return NULL;
	map = mmap(reserved + GUARDED_BYTES, bytes, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, fd, 0);
	if (map != MAP_FAILED) {
		kt_assert(map == reserved + GUARDED_BYTES);
		return map;
	}
	unmap_guards(reserved, bytes);
	return NULL;
}

void guarded_unmap(void *map, size_t bytes)
{
	munmap((char *)map - GUARDED_BYTES, guarded_bytes(bytes));
}
