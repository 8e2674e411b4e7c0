/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a call did, as text that must be the same with and without the shim:
 * return value, errno (a mark when it was left alone), resident pages, the
 * kernel's own account of the mapping, and the contents.
 *
 * Mappings under test lie between two guard pages so that no neighbour merges
 * with them and the account is theirs alone.
 */
#ifndef TESTS_PRELOAD_PROBE_H
#define TESTS_PRELOAD_PROBE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE_BYTES ((size_t)4096)
#define SIZE_BYTES ((size_t)8 << 20)
#define ERRNO_MARK 4711
/* How far below a guarded mapping its guard begins. */
#define GUARD_BYTES PAGE_BYTES

static inline void must_hold(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(3);
	}
}

/* Address space of @len bytes with nothing next to it. */
static inline char *guarded_space(size_t len)
{
	char *base = mmap(NULL, len + 2 * GUARD_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must_hold(base != MAP_FAILED, "guarded_space");
	return base + GUARD_BYTES;
}

static inline void unmap_space(char *space, size_t len)
{
	munmap(space - GUARD_BYTES, len + 2 * GUARD_BYTES);
}

/* A file of @len bytes in which every page differs; already unlinked. */
static inline int patterned_file(size_t len)
{
	char name[] = "/tmp/ktask-preload-XXXXXX";
	int fd = mkstemp(name);

	must_hold(fd >= 0, "mkstemp");
	unlink(name);
	must_hold(ftruncate(fd, (off_t)len) == 0, "ftruncate");
	for (size_t pos = 0; pos < len; pos += PAGE_BYTES) {
		uint64_t word = pos * 2654435761u + 1;

		must_hold(pwrite(fd, &word, sizeof(word), (off_t)pos) ==
				  (ssize_t)sizeof(word),
			  "pwrite");
	}
	must_hold(fsync(fd) == 0, "fsync");
	return fd;
}

static inline size_t resident_pages(char *addr, size_t len)
{
	size_t nr_pages = (len + PAGE_BYTES - 1) / PAGE_BYTES;
	unsigned char *map = calloc(nr_pages, 1);
	size_t nr_resident = 0;

	must_hold(map != NULL, "calloc");
	if (mincore(addr, len, map))
		nr_pages = 0;
	for (size_t i = 0; i < nr_pages; i++)
		nr_resident += map[i] & 1;
	free(map);
	return nr_resident;
}

static inline int account_field(const char *line)
{
	static const char *const fields[] = { "Size:", "Rss:", "Anonymous:",
					      "Locked:" };

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (!strncmp(line, fields[i], strlen(fields[i])))
			return 1;
	return strstr(line, "_Dirty:") != NULL;
}

static inline unsigned long account_value(const char *line)
{
	return strtoul(strchr(line, ':') + 1, NULL, 10);
}

/* The kernel's account of every mapping inside [addr, addr + len). */
static inline void print_account(char *addr, size_t len)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	uintptr_t start, end;
	char line[512];
	int inside = 0;

	must_hold(maps != NULL, "smaps");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start >= (uintptr_t)addr &&
				 end <= (uintptr_t)addr + len;
		else if (inside && account_field(line))
			printf(" %.*s%lu", (int)(strchr(line, ':') - line + 1),
			       line, account_value(line));
	}
	fclose(maps);
}

static inline void print_contents(const char *addr, size_t len)
{
	uint64_t sum = 0;

	for (size_t pos = 0; pos < len; pos += PAGE_BYTES)
		sum = sum * 31 + *(const volatile uint64_t *)(addr + pos);
	printf(" sum=%016llx", (unsigned long long)sum);
}

static inline void print_outcome(const char *name, long rc, int error)
{
	printf("%s: rc=%ld errno=%s", name, rc,
	       error == ERRNO_MARK ? "untouched" : strerrorname_np(error));
}

static inline void print_pages(char *addr, size_t len)
{
	printf(" resident=%zu", resident_pages(addr, len));
	print_account(addr, (len + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1));
}

#endif /* TESTS_PRELOAD_PROBE_H */
