/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Requests to /dev/ktask, and a look at what they did.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

int device(void)
{
	return open("/dev/ktask", O_RDWR | O_CLOEXEC);
}

static int ask(int fd, unsigned long what, struct ktask_mem *mem)
{
	mem->size = sizeof(*mem);
	return ioctl(fd, what, mem) ? errno : 0;
}

int request(int fd, unsigned long what, void *addr, size_t len, unsigned flags,
	    void **failed)
{
	struct ktask_mem mem = {
		.flags = flags,
		.addr = (uintptr_t)addr,
		.len = len,
	};
	int error = ask(fd, what, &mem);

	if (failed)
		*failed = (void *)(uintptr_t)mem.failed;
	return error;
}

int request_of(int fd, unsigned long what, int of, uint64_t addr, size_t len,
	       unsigned flags, uint64_t *failed)
{
	struct ktask_mem mem = {
		.flags = flags | KTASK_MEM_FD,
		.fd = of,
		.addr = addr,
		.len = len,
	};
	int error = ask(fd, what, &mem);

	if (failed)
		*failed = mem.failed;
	return error;
}

char *map(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

size_t present(char *addr, size_t len)
{
	static unsigned char seen[RANGE / PAGE];
	size_t nr = 0;

	if (mincore(addr, len, seen))
		return 0;
	for (size_t i = 0; i < len / PAGE; i++)
		nr += seen[i] & 1;
	return nr;
}
