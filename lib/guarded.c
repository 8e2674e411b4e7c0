/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See guarded.h.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "lib/guarded.h"

static size_t in_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

/* All of it: the memory in whole pages, and room before and behind. */
static size_t whole_bytes(size_t bytes)
{
	return in_pages(bytes) + 2 * GUARDED_BYTES;
}

/*
 * The memory could not be had.  The kernel may have taken the room away that it
 * was to lie in, and another thread may have a mapping of its own there by now:
 * that stays, and if it is still our room, that costs no memory.
 */
static void give_up(char *room, size_t bytes)
{
	munmap(room, GUARDED_BYTES);
	munmap(room + GUARDED_BYTES + in_pages(bytes), GUARDED_BYTES);
}

/* First the room, then the memory in its middle: nobody comes in between. */
void *guarded_map(int fd, size_t bytes)
{
	char *room = mmap(NULL, whole_bytes(bytes), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *map;

	if (room == MAP_FAILED)
		return NULL;
	map = mmap(room + GUARDED_BYTES, bytes, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, fd, 0);
	if (map != MAP_FAILED)
		return map;
	give_up(room, bytes);
	return NULL;
}

void guarded_unmap(void *map, size_t bytes)
{
	munmap((char *)map - GUARDED_BYTES, whole_bytes(bytes));
}
