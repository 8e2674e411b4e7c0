/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that knows nothing of ktask and maps memory for the mock device of iommufd,
 * in good cases and bad, described line by line.  The same text must come out with the
 * shim and without it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../iommufd_mock.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define LEN (32 * MIB)
#define IOVA (2 * MOCK_FIRST_IOVA)
#define RW (PROT_READ | PROT_WRITE)
#define BOTH (MOCK_FIXED | MOCK_READABLE | MOCK_WRITEABLE)

static struct mock_device device;

static void must(int done, const char *what)
{
	if (done)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static char *map_memory(int prot, int type)
{
	char *at = mmap(NULL, LEN, prot, type | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

static void add_mapping(const char *name, char *at, size_t len, unsigned flags)
{
	int error = mock_map(&device, at, len, IOVA, flags);

	printf("%s: error %d, reached %d", name, error,
	       error ? 0 : mock_reaches(&device, at, len, IOVA));
	printf(", unmapped %lld\n", (long long)mock_unmap_all(&device));
	fflush(stdout);
}

static void add_and_unmap(const char *name, char *at, unsigned flags)
{
	add_mapping(name, at, LEN, flags);
	munmap(at, LEN);
}

static void add_hole(size_t hole)
{
	char *at = map_memory(RW, MAP_PRIVATE);
	char name[40];

	munmap(at + hole, PAGE);
	snprintf(name, sizeof(name), "a hole at %zu KiB", hole / 1024);
	add_and_unmap(name, at, BOTH);
}

int main(void)
{
	char *at;

	must(!mock_open(&device), "opening the device");
	add_and_unmap("private", map_memory(RW, MAP_PRIVATE), BOTH);
	add_and_unmap("shared", map_memory(RW, MAP_SHARED), BOTH);
	add_and_unmap("for reading", map_memory(RW, MAP_PRIVATE),
		      MOCK_FIXED | MOCK_READABLE);
	add_and_unmap("for writing", map_memory(RW, MAP_PRIVATE),
		      MOCK_FIXED | MOCK_WRITEABLE);
	add_and_unmap("read only", map_memory(PROT_READ, MAP_PRIVATE),
		      MOCK_FIXED | MOCK_READABLE);
	add_and_unmap("read only, to be written",
		      map_memory(PROT_READ, MAP_PRIVATE), BOTH);
	add_and_unmap("nothing allowed", map_memory(PROT_NONE, MAP_PRIVATE),
		      BOTH);
	add_and_unmap("bad flags", map_memory(RW, MAP_PRIVATE), BOTH | 8);
	add_hole(0);
	add_hole(LEN / 2);
	add_hole(LEN - PAGE);
	at = map_memory(RW, MAP_PRIVATE);
	add_mapping("odd address", at + 1, LEN / 2, BOTH);
	for (size_t pos = 0; pos < LEN; pos += 2 * PAGE)
		memset(at + pos, 5, PAGE);
	add_mapping("half of it present", at, LEN, BOTH);
	add_mapping("present", at, LEN, BOTH);
	for (size_t pos = 0; pos < LEN; pos += PAGE)
		must(at[pos] == (pos % (2 * PAGE) ? 0 : 5), "contents");
	printf("contents are kept\n");
	return 0;
}
