/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Mappings to try operations on, and what the kernel says about their pages.
 * Needs ktest.h before it.
 */
#ifndef TEST_PAGES_H
#define TEST_PAGES_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ktask/ops.h>

#define MIB ((size_t)1 << 20)

static inline size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Untouched memory at a multiple of 2 MiB, without huge pages of its own.
 * Always with some of our own address space below: a hole made at the start
 * must not be joined to free space, where the next stack would fill it.
 */
static inline char *map_anon(size_t len, int prot, int flags)
{
	char *all = mmap(NULL, len + 4 * MIB, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at;

	assert_ptr_not_equal(all, MAP_FAILED);
	at = (char *)(((uintptr_t)all + 2 * MIB) & ~(2 * MIB - 1));
	assert_ptr_equal(
		mmap(at, len, prot, flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		at);
	madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}

static inline char *map_private(size_t len)
{
	return map_anon(len, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static inline int memory_file(size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	return fd;
}

/* One bit of each entry of /proc/self/pagemap: 63 present. */
static inline size_t pages_present(const char *at, size_t len)
{
	size_t nr = len / page_bytes(), present = 0;
	FILE *file = fopen("/proc/self/pagemap", "re");
	uint64_t entry;

	assert_non_null(file);
	assert_int_equal(fseeko(file, (off_t)((uintptr_t)at / page_bytes() * 8),
				SEEK_SET),
			 0);
	for (size_t i = 0; i < nr && fread(&entry, 8, 1, file) == 1; i++)
		present += entry >> 63;
	fclose(file);
	return present;
}

/* A number of /proc/self/status, such as VmLck, in bytes. */
static inline size_t status_bytes(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	size_t name_len = strlen(name);
	unsigned long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, name_len) && line[name_len] == ':')
			kib = strtoul(line + name_len + 1, NULL, 10);
	if (file)
		fclose(file);
	return kib * 1024;
}

static inline int run_op(const char *name, void *addr, size_t len,
			 unsigned flags, struct ktask_result *result)
{
	struct ktask_op_args args = {
		.struct_size = sizeof(args),
		.addr = addr,
		.len = len,
		.flags = flags,
	};
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.result = result;
	return ktask_op_run(ktask_op_find(name), &args, &opts);
}

#endif /* TEST_PAGES_H */
