/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the shim costs a program that makes only small calls: nanoseconds per
 * call, least mean of many batches.  Calls that do next to nothing in the
 * kernel, so that the shim's share is seen.  Run with and without LD_PRELOAD.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NR_BATCHES 400
#define NR_CALLS 500

static char page[4096] __attribute__((aligned(4096)));

static void call_madvise(void)
{
	madvise(page, 0, MADV_NORMAL);
}

static void call_munmap(void)
{
	munmap(page + 1, 4096);
}

static void call_mlock(void)
{
	mlock(page, 0);
}

static void call_mmap(void)
{
	mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void call_syscall(void)
{
	syscall(SYS_getpid);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double least_ns(void (*call)(void))
{
	double least = 1e9;

	for (int batch = 0; batch < NR_BATCHES; batch++) {
		double start = now_ns(), mean;

		for (int i = 0; i < NR_CALLS; i++)
			call();
		mean = (now_ns() - start) / NR_CALLS;
		least = mean < least ? mean : least;
	}
	return least;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*call)(void);
	} calls[] = {
		{ "mmap", call_mmap },	     { "munmap", call_munmap },
		{ "mlock", call_mlock },     { "madvise", call_madvise },
		{ "syscall", call_syscall },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		printf("%s=%.1f ", calls[i].name, least_ns(calls[i].call));
	puts("ns");
	return 0;
}
