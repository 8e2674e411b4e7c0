/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Up to eight threads take part, because it is done before every sample and not timed; a
 * failure only makes the next sample noisier.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backing.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define MAX_PARTS 8 /* more threads are hardly faster */
#define HUGE_BYTES ((size_t)2 << 20)

struct part {
	char *addr;
	size_t len;
	pthread_t thread;
	int error; /* of making the thread */
};

static void *populate_part(void *arg)
{
	const struct part *part = arg;

	(void)madvise(part->addr, part->len, MADV_POPULATE_WRITE);
	return NULL;
}

/* Whole huge pages in all but the last. */
static unsigned divide_range(struct part *parts, char *addr, size_t len)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned most = cpus < 1	   ? 1
			: cpus > MAX_PARTS ? MAX_PARTS
					   : (unsigned)cpus;
	size_t bytes = (len / most + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	unsigned nr = 0;

	for (; len && nr < most; nr++) {
		parts[nr].addr = addr;
		parts[nr].len = nr + 1 < most && bytes < len ? bytes : len;
		addr += parts[nr].len;
		len -= parts[nr].len;
	}
	return nr;
}

static void populate_by_all(char *addr, size_t len)
{
	struct part parts[MAX_PARTS];
	unsigned nr = divide_range(parts, addr, len);

	for (unsigned i = 1; i < nr; i++)
		parts[i].error = pthread_create(&parts[i].thread, NULL,
						populate_part, &parts[i]);
	populate_part(&parts[0]);
	for (unsigned i = 1; i < nr; i++)
		if (parts[i].error)
			populate_part(&parts[i]);
		else
			pthread_join(parts[i].thread, NULL);
}

void backing_renew(size_t len, int thp_advice)
{
	char *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return;
	(void)madvise(addr, len, thp_advice);
	populate_by_all(addr, len);
	munmap(addr, len);
}

char *backing_map_absent(size_t len)
{
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at != MAP_FAILED)
		(void)madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}
