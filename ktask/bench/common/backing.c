/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two threads, because it is done before every sample and not timed; a failure
 * only makes the next sample noisier.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "backing.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct half {
	char *addr;
	size_t len;
};

static void *populate_backing(void *arg)
{
	const struct half *half = arg;

	(void)madvise(half->addr, half->len, MADV_POPULATE_WRITE);
	return NULL;
}

void backing_renew(size_t len, int thp_advice)
{
	char *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Whole huge pages in both halves. */
	size_t first_len = (len / 2 + 0x1fffff) & ~(size_t)0x1fffff;
	struct half first = { addr, first_len };
	struct half second = { addr + first_len, len - first_len };
	pthread_t thread;

	if (addr == MAP_FAILED)
		return;
	(void)madvise(addr, len, thp_advice);
	if (pthread_create(&thread, NULL, populate_backing, &second)) {
		populate_backing(&second);
		populate_backing(&first);
	} else {
		populate_backing(&first);
		pthread_join(thread, NULL);
	}
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
