/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a virtual machine monitor does with a device: VFIO_IOMMU_MAP_DMA of its
 * guest's memory, which pins every page.  Plain, after the memory was populated,
 * by the library or by the module, and of memory that the module has pinned.
 *
 * A program of its own, linked with the library: PID 1 runs it, says how often to go
 * each way, and passes on what it prints.  Ends with 0, or with 1 and what went wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ops.h>
#include <linux/ktask.h>

#include "../guest.h"
#include "../vfio_device.h"

#define LEN (128 * MIB)
#define ROUNDS_MAX 5

struct way {
	const char *name;
	int (*prepare)(int fd, const struct way *way, char *addr);
	unsigned long what; /* is asked of the module */
	unsigned threads;
};

static double clock_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int by_nobody(int fd, const struct way *way, char *addr)
{
	(void)fd, (void)way, (void)addr;
	return 0;
}

static int by_library(int fd, const struct way *way, char *addr)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = addr,
				      .len = LEN };
	struct ktask_opts opts = KTASK_OPTS_INIT;

	(void)fd;
	opts.max_threads = way->threads;
	return -ktask_op_run(ktask_op_find("populate"), &args, &opts);
}

static int by_module(int fd, const struct way *way, char *addr)
{
	struct ktask_mem mem = {
		.size = sizeof(mem),
		.flags = way->what == KTASK_IOC_POPULATE ? KTASK_MEM_WRITE : 0,
		.addr = (uintptr_t)addr,
		.len = LEN,
		.max_threads = way->threads,
	};

	return ioctl(fd, way->what, &mem) ? errno : 0;
}

static const struct way all_ways[] = {
	{ "plain", by_nobody, 0, 1 },
	{ "populated by libktask, then mapped", by_library, 0, 1 },
	{ "populated by libktask, then mapped", by_library, 0, 2 },
	{ "populated by ktask.ko, then mapped", by_module, KTASK_IOC_POPULATE,
	  1 },
	{ "populated by ktask.ko, then mapped", by_module, KTASK_IOC_POPULATE,
	  2 },
	{ "pinned by ktask.ko, then mapped", by_module, KTASK_IOC_PIN, 1 },
	{ "pinned by ktask.ko, then mapped", by_module, KTASK_IOC_PIN, 2 },
};

#define NR_WAYS (int)(sizeof(all_ways) / sizeof(*all_ways))

/* The module's pins go while the device still has its own. */
static int time_one_way(int container, const struct way *way, double *seconds)
{
	int fd = open_device(), error;
	int64_t unmapped;
	char *addr = map_memory(LEN);
	long before = count_pinned();
	double start;

	madvise(addr, LEN, MADV_NOHUGEPAGE);
	start = clock_seconds();
	error = way->prepare(fd, way, addr);
	if (!error)
		error = -vfio_map(container, addr, LEN, 0);
	*seconds = clock_seconds() - start;
	close(fd);
	if (!error && !pins_become(before + (long)(LEN / PAGE)))
		error = ENODATA;
	unmapped = vfio_unmap(container, LEN, 0);
	munmap(addr, LEN);
	if (!error && !pins_become(before))
		error = EBUSY;
	return error || unmapped >= 0 ? error : (int)-unmapped;
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void show_way(const struct way *way, double seconds, double plain)
{
	printf("VFIO_IOMMU_MAP_DMA of %lu MiB, %s, threads %u: %.3f s, %.2f "
	       "times as fast\n",
	       LEN / MIB, way->name, way->threads, seconds, plain / seconds);
}

int main(int argc, char **argv)
{
	static double seconds[NR_WAYS][ROUNDS_MAX];
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS_MAX;
	int container = vfio_open();
	int error = container < 0 || rounds > ROUNDS_MAX ? ENODEV : 0;

	setenv("KTASK_ENGINE", "user", 1);
	setenv("XDG_CACHE_HOME", "/cache", 1);
	for (int i = 0; i < NR_WAYS * rounds && !error; i++)
		error = time_one_way(container, &all_ways[i % NR_WAYS],
				     &seconds[i % NR_WAYS][i / NR_WAYS]);
	if (error) {
		printf("%s\n", strerror(error));
		return 1;
	}
	for (int i = 0; i < NR_WAYS; i++)
		qsort(seconds[i], (size_t)rounds, sizeof(**seconds),
		      compare_values);
	for (int i = 0; i < NR_WAYS; i++)
		show_way(&all_ways[i], seconds[i][rounds / 2],
			 seconds[0][rounds / 2]);
	return 0;
}
