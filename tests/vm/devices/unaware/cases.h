/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What programs that know nothing of ktask share: memory to register with a device, and
 * what the kernel says of theirs.
 */
#ifndef TESTS_VM_DEVICES_UNAWARE_CASES_H
#define TESTS_VM_DEVICES_UNAWARE_CASES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define LEN (32 * MIB)
#define RW (PROT_READ | PROT_WRITE)

static inline void must_hold(int done, const char *what)
{
	if (done)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* status_kib - KiB behind @name, "VmPin:", in /proc/self/status */
static inline long status_kib(const char *name)
{
	FILE *in = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (in && kib < 0 && fgets(line, sizeof(line), in))
		if (!strncmp(line, name, strlen(name)))
			kib = strtol(line + strlen(name), NULL, 10);
	if (in)
		fclose(in);
	return kib;
}

/* map_memory - LEN bytes of a file, or of none: -1 */
static inline char *map_memory(int prot, int type, int fd)
{
	char *at = mmap(NULL, LEN, prot, type | (fd < 0 ? MAP_ANONYMOUS : 0),
			fd, 0);

	must_hold(at != MAP_FAILED, "mmap");
	return at;
}

/* map_with_hole - a page is missing; what is registered is the rest */
static inline char *map_with_hole(size_t hole)
{
	char *at = map_memory(RW, MAP_PRIVATE, -1);

	munmap(at + hole, PAGE);
	return at;
}

#endif /* TESTS_VM_DEVICES_UNAWARE_CASES_H */
