/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Prefaulting, on request: memory that is mapped to be written to is made
 * present at once by several threads, where the program would take a fault for
 * each page later: a heap that is touched before use, shared buffers.
 *
 * Knows which mappings; map.c asks.  Whoever requests this says that the
 * program will use what it maps.  A program may map more than that, so what
 * says that it is not all meant (MAP_NORESERVE, a stack) is left alone, as is
 * what the machine has no memory for now.
 *
 * Behaves badly with programs that map much and use little, and where a
 * control group's limit is far below the machine's memory: what is over the
 * limit is tried in vain.  The call returns when all is present: a program
 * that could have used the first pages meanwhile waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"

#define LEFT_ALONE \
	(MAP_POPULATE | MAP_LOCKED | MAP_NORESERVE | MAP_GROWSDOWN | MAP_STACK)

/* In bytes; 0 when it cannot be told.  No stdio: it allocates. */
static size_t available_bytes(void)
{
	static const char key[] = "\nMemAvailable:";
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	char text[512], *found;
	ssize_t len;

	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	found = strstr(text, key);
	return found ? strtoul(found + sizeof(key) - 1, NULL, 10) * 1024 : 0;
}

bool prefault_wanted(int prot, int flags)
{
	const int both = PROT_READ | PROT_WRITE;

	return (prot & both) == both && (flags & MAP_ANONYMOUS) &&
	       !(flags & LEFT_ALONE);
}

/* Huge pages of the pool are not in what is available, but reserved. */
bool prefault_possible(size_t len, int flags)
{
	int saved_errno = errno;
	bool possible = real_knows_advice(MADV_POPULATE_WRITE) &&
			((flags & MAP_HUGETLB) || len < available_bytes());

	errno = saved_errno;
	return possible;
}
