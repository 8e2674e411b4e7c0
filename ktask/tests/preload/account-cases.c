/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that store in a part of their memory, and print how much that was and how much
 * more is present, in MiB, for comparison with the report.
 */
#include <sys/resource.h>

#include "touches.h"

static size_t nr_stored;

static size_t present_bytes(void)
{
	unsigned long all, present = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	must_hold(file && fscanf(file, "%lu %lu", &all, &present) == 2,
		  "statm");
	fclose(file);
	return present * PAGE_BYTES;
}

static char *map_memory(size_t len)
{
	char *base = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must_hold(base != MAP_FAILED, "mmap");
	return base;
}

/* @nr mappings of @len, of each the first @stored bytes, slowly enough for helpers. */
static void store_part(int nr, size_t len, size_t stored)
{
	for (int i = 0; i < nr; i++) {
		char *base = map_memory(len);

		for (size_t at = 0; at < stored; at += PAGE_BYTES) {
			base[at] = 1;
			if (!(at % (MIB / 2)))
				usleep(200);
		}
		nr_stored += stored;
	}
}

/* No file can be opened. */
static void store_without_files(void)
{
	struct rlimit few = { 3, 3 };

	must_hold(!setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
	store_part(1, 256 * MIB, 256 * MIB);
	exit(0);
}

int main(int argc, char **argv)
{
	size_t before = present_bytes(), after;
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "nofile"))
		store_without_files();
	if (!strcmp(how, "many"))
		store_part(40, 64 * MIB, 16 * MIB);
	else if (!strcmp(how, "part"))
		store_part(10, 256 * MIB, 32 * MIB);
	else if (!strcmp(how, "stop"))
		store_part(1, 4096 * MIB, 80 * MIB);
	else
		store_part(1, 256 * MIB, 256 * MIB);
	usleep(100000);
	after = present_bytes() - before;
	printf("%zu %zu\n", nr_stored / MIB,
	       after > nr_stored ? (after - nr_stored) / MIB : 0);
	fflush(stdout);
	if (argc > 2)
		execl(argv[2], argv[2], (char *)NULL);
	return 0;
}
