/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Huge pages, because that is quick; a failure only makes the next sample
 * noisier.
 */
#include <sys/mman.h>

#include "backing.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void backing_renew(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return;
	(void)madvise(addr, len, MADV_HUGEPAGE);
	(void)madvise(addr, len, MADV_POPULATE_WRITE);
	munmap(addr, len);
}
