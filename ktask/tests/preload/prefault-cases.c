/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Maps memory in several ways, none of which asks for pages, and tells how many
 * per cent of it are present, what is in it, and what errno was.
 */
#include "probe.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static const struct {
	const char *name;
	int prot, flags;
	size_t len;
} cases[] = {
	{ "private", RW, ANON, SIZE_BYTES },
	{ "private, odd length", RW, ANON, SIZE_BYTES - 5000 },
	{ "shared", RW, MAP_SHARED | MAP_ANONYMOUS, SIZE_BYTES },
	{ "small", RW, ANON, 16 * PAGE_BYTES },
	{ "read only", PROT_READ, ANON, SIZE_BYTES },
	{ "write only", PROT_WRITE, ANON, SIZE_BYTES },
	{ "no access", PROT_NONE, ANON, SIZE_BYTES },
	{ "no reserve", RW, ANON | MAP_NORESERVE, SIZE_BYTES },
	{ "stack", RW, ANON | MAP_STACK, SIZE_BYTES },
	{ "more than there is", RW, ANON, (size_t)1 << 46 },
	{ "no such type", RW, MAP_ANONYMOUS, SIZE_BYTES },
};

/* Touches nothing, so that what is present is what the mapping brought. */
static unsigned present_percent(void *base, size_t len)
{
	size_t nr_pages = (len + PAGE_BYTES - 1) / PAGE_BYTES, present = 0;
	unsigned char *in = malloc(nr_pages);

	if (!in || mincore(base, len, in))
		return 999;
	for (size_t i = 0; i < nr_pages; i++)
		present += in[i] & 1;
	free(in);
	return (unsigned)(100 * present / nr_pages);
}

static void try_mapping(const char *name, void *addr, int prot, int flags,
			size_t len)
{
	char *base;

	errno = ERANGE;
	base = mmap(addr, len, prot, flags, -1, 0);
	if (base == MAP_FAILED) {
		printf("%s: refused, errno %d\n", name, errno);
		return;
	}
	printf("%s: %u%%, errno %d", name, present_percent(base, len), errno);
	if (prot & PROT_READ)
		printf(", holds %d", base[0] | base[len / 2] | base[len - 1]);
	putchar('\n');
	munmap(base, len);
}

/* As a JVM does it: reserve, then commit a part in place. */
static void commit_part(void)
{
	char *reserved = mmap(NULL, 2 * SIZE_BYTES, PROT_NONE,
			      ANON | MAP_NORESERVE, -1, 0);

	if (reserved != MAP_FAILED)
		try_mapping("committed", reserved, RW, ANON | MAP_FIXED,
			    SIZE_BYTES);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		try_mapping(cases[i].name, NULL, cases[i].prot, cases[i].flags,
			    cases[i].len);
	commit_part();
	return 0;
}
