/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a server with a pinned cache does when it starts: map so many MiB and
 * lock them in memory with one call; prints the seconds that this took, and
 * those that giving it back took.  A stand-in for cudaHostRegister() and its
 * kin, whose time goes into the same pages being made; they then pin instead
 * of locking, which is not done here.
 *
 *	pin MIB [huge]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	size_t len = argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	double start, locked, end;
	void *base;

	base = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED) {
		perror("pin: mapping");
		return 1;
	}
	madvise(base, len,
		argc > 2 && !strcmp(argv[2], "huge") ? MADV_HUGEPAGE
						     : MADV_NOHUGEPAGE);
	start = now_seconds();
	if (mlock(base, len)) {
		perror("pin: locking");
		return 1;
	}
	locked = now_seconds();
	munmap(base, len);
	end = now_seconds();
	printf("%.6f %.6f\n", locked - start, end - locked);
	return 0;
}
