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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include <linux/vfio.h>

#include "../guest.h"

#define DEVICES "/sys/bus/pci/devices"
#define LEN (128 * MIB)
#define ROUNDS_MAX 5

struct way {
	const char *name;
	int (*prepare)(int fd, const struct way *way, char *addr);
	unsigned long what; /* is asked of the module */
	unsigned threads;
};

static bool has_id(const char *device, const char *file, const char *wanted)
{
	char path[400], text[20];

	snprintf(path, sizeof(path), DEVICES "/%s/%s", device, file);
	read_file(path, text, sizeof(text));
	return !strncmp(text, wanted, strlen(wanted));
}

static bool find_device(char *name, size_t size)
{
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir(DEVICES);

	while (dir && !found && (entry = readdir(dir))) {
		found = has_id(entry->d_name, "vendor", "0x1234") &&
			has_id(entry->d_name, "device", "0x11e8");
		if (found)
			snprintf(name, size, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Return: the group's descriptor, or -1. */
static int take_device(void)
{
	char name[256], path[400], group[200];
	ssize_t n;

	if (!find_device(name, sizeof(name)))
		return -1;
	snprintf(path, sizeof(path), DEVICES "/%s/driver_override", name);
	write_file(path, "vfio-pci");
	write_file("/sys/bus/pci/drivers_probe", name);
	snprintf(path, sizeof(path), DEVICES "/%s/iommu_group", name);
	n = readlink(path, group, sizeof(group) - 1);
	if (n < 0)
		return -1;
	group[n] = 0;
	snprintf(path, sizeof(path), "/dev/vfio/%s", strrchr(group, '/') + 1);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int open_container(int group)
{
	int container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);

	if (container < 0 ||
	    ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) ||
	    ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		return -1;
	return container;
}

static int map_dma(int container, char *addr)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)addr,
		.iova = 0,
		.size = LEN,
	};

	return ioctl(container, VFIO_IOMMU_MAP_DMA, &map) ? errno : 0;
}

static int unmap_dma(int container)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.size = LEN,
	};

	return ioctl(container, VFIO_IOMMU_UNMAP_DMA, &unmap) ? errno : 0;
}

static double now(void)
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

static const struct way ways[] = {
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

#define NR_WAYS (int)(sizeof(ways) / sizeof(*ways))

/* The module's pins go while the device still has its own. */
static int time_one_way(int container, const struct way *way, double *seconds)
{
	int fd = device(), error, error_unmap;
	char *addr = map(LEN);
	long before = pinned();
	double start;

	madvise(addr, LEN, MADV_NOHUGEPAGE);
	start = now();
	error = way->prepare(fd, way, addr);
	if (!error)
		error = map_dma(container, addr);
	*seconds = now() - start;
	close(fd);
	if (!error && !pins_become(before + (long)(LEN / PAGE)))
		error = ENODATA;
	error_unmap = unmap_dma(container);
	munmap(addr, LEN);
	if (!error && !pins_become(before))
		error = EBUSY;
	return error ? error : error_unmap;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void show(const struct way *way, double seconds, double plain)
{
	printf("VFIO_IOMMU_MAP_DMA of %lu MiB, %s, threads %u: %.3f s, %.2f "
	       "times as fast\n",
	       LEN / MIB, way->name, way->threads, seconds, plain / seconds);
}

int main(int argc, char **argv)
{
	static double seconds[NR_WAYS][ROUNDS_MAX];
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS_MAX;
	int group = take_device(), container = open_container(group);
	int error =
		group < 0 || container < 0 || rounds > ROUNDS_MAX ? ENODEV : 0;

	setenv("KTASK_ENGINE", "user", 1);
	setenv("XDG_CACHE_HOME", "/cache", 1);
	for (int i = 0; i < NR_WAYS * rounds && !error; i++)
		error = time_one_way(container, &ways[i % NR_WAYS],
				     &seconds[i % NR_WAYS][i / NR_WAYS]);
	if (error) {
		printf("%s\n", strerror(error));
		return 1;
	}
	for (int i = 0; i < NR_WAYS; i++)
		qsort(seconds[i], (size_t)rounds, sizeof(**seconds), compare);
	for (int i = 0; i < NR_WAYS; i++)
		show(&ways[i], seconds[i][rounds / 2], seconds[0][rounds / 2]);
	return 0;
}
