/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that knows nothing of ktask and maps memory for the mock device of iommufd,
 * in good cases and bad, described line by line.  The same text must come out with the
 * shim and without it.
 */
#include "../iommufd_mock.h"
#include "cases.h"

#define IOVA (2 * MOCK_FIRST_IOVA)
#define BOTH (MOCK_FIXED | MOCK_READABLE | MOCK_WRITEABLE)

static struct mock_device device;

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

static void add_hole(const char *name, size_t hole)
{
	add_and_unmap(name, map_with_hole(hole), BOTH);
}

int main(void)
{
	char *at;

	must_hold(!mock_open(&device), "opening the device");
	add_and_unmap("private", map_memory(RW, MAP_PRIVATE, -1), BOTH);
	add_and_unmap("shared", map_memory(RW, MAP_SHARED, -1), BOTH);
	add_and_unmap("for reading", map_memory(RW, MAP_PRIVATE, -1),
		      MOCK_FIXED | MOCK_READABLE);
	add_and_unmap("for writing", map_memory(RW, MAP_PRIVATE, -1),
		      MOCK_FIXED | MOCK_WRITEABLE);
	add_and_unmap("read only", map_memory(PROT_READ, MAP_PRIVATE, -1),
		      MOCK_FIXED | MOCK_READABLE);
	add_and_unmap("read only, to be written",
		      map_memory(PROT_READ, MAP_PRIVATE, -1), BOTH);
	add_and_unmap("nothing allowed", map_memory(PROT_NONE, MAP_PRIVATE, -1),
		      BOTH);
	add_and_unmap("bad flags", map_memory(RW, MAP_PRIVATE, -1), BOTH | 8);
	add_hole("a hole at 0 KiB", 0);
	add_hole("a hole at 16384 KiB", LEN / 2);
	add_hole("a hole at 32764 KiB", LEN - PAGE);
	at = map_memory(RW, MAP_PRIVATE, -1);
	add_mapping("odd address", at + 1, LEN / 2, BOTH);
	for (size_t pos = 0; pos < LEN; pos += 2 * PAGE)
		memset(at + pos, 5, PAGE);
	add_mapping("half of it present", at, LEN, BOTH);
	add_mapping("present", at, LEN, BOTH);
	for (size_t pos = 0; pos < LEN; pos += PAGE)
		must_hold(at[pos] == (pos % (2 * PAGE) ? 0 : 5), "contents");
	printf("contents are kept\n");
	return 0;
}
