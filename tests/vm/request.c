/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Requests to /dev/ktask, and a look at what they did.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

int open_device(void)
{
	return open("/dev/ktask", O_RDWR | O_CLOEXEC);
}

static int ask_device(int fd, unsigned long what, struct ktask_mem *mem)
{
	mem->size = sizeof(*mem);
	return ioctl(fd, what, mem) ? errno : 0;
}

int do_request(int fd, unsigned long what, void *addr, size_t len,
	       unsigned flags, void **failed)
{
	struct ktask_mem mem = {
		.flags = flags,
		.addr = (uintptr_t)addr,
		.len = len,
	};
	int error = ask_device(fd, what, &mem);

	if (failed)
		*failed = (void *)(uintptr_t)mem.failed;
	return error;
}

unsigned request_threads(int fd, unsigned long what, void *addr, size_t len,
			 unsigned flags)
{
	struct ktask_mem mem = {
		.flags = flags,
		.addr = (uintptr_t)addr,
		.len = len,
	};

	return ask_device(fd, what, &mem) ? 0 : mem.threads;
}

int request_alone(int fd, unsigned long what, void *addr, size_t len)
{
	struct ktask_mem mem = {
		.flags = what == KTASK_IOC_POPULATE ? KTASK_MEM_WRITE : 0,
		.addr = (uintptr_t)addr,
		.len = len,
		.max_threads = 1,
	};

	return ask_device(fd, what, &mem);
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
	int error = ask_device(fd, what, &mem);

	if (failed)
		*failed = mem.failed;
	return error;
}

char *map_memory(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

size_t count_pages(char *addr, size_t len)
{
	static unsigned char seen[RANGE / PAGE];
	size_t nr = 0;

	if (mincore(addr, len, seen))
		return 0;
	for (size_t i = 0; i < len / PAGE; i++)
		nr += seen[i] & 1;
	return nr;
}

long count_pinned(void)
{
	static char text[65536];
	long acquired = 0, released = 0;
	char *word;

	read_file("/proc/vmstat", text, sizeof(text));
	word = strstr(text, "nr_foll_pin_acquired ");
	if (word)
		acquired = strtol(word + 21, NULL, 10);
	word = strstr(text, "nr_foll_pin_released ");
	if (word)
		released = strtol(word + 21, NULL, 10);
	return acquired - released;
}

/* Counters of pins are folded in now and then only. */
bool pins_become(long wanted)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 50) {
		write_file("/proc/sys/vm/stat_refresh", "1");
		if (count_pinned() == wanted)
			return true;
		sleep_ms(50);
	}
	return false;
}
