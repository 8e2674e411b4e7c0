/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * System calls that register memory with a device: ioctl() of VFIO's type1 and of
 * iommufd, io_uring_register() by syscall().  Library functions are in library_calls.c.
 *
 * These calls pin pages, and spend most of that time making them.  So large absent parts
 * are made present in parallel.  Then the plain call pins them, and decides.
 *
 * Some memory is left alone: ranges that the plain call would probably refuse, because
 * they have a hole or exceed the limit on locked memory; memory of a file, which would be
 * written to; and memory that is present according to samples.
 *
 * Differences from the plain call: pages may be present after a call that failed for
 * another reason, such as a device address in use.  iommufd pins nothing before a device
 * is attached, so pages are present earlier.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include <ktask/ops.h>

#include "preload/shim.h"
#include "util/file.h"
#include "util/iommufd.h"
#include "util/maps_line.h"
#include "util/present_samples.h"
#include "util/scoped.h"

/* The flag of a ring that is given by its number among those of the thread. */
#define USE_REGISTERED_RING 0x80000000u
/* The kernel takes no more buffers. */
#define BUFFERS_MAX (1u << 14)
#define BUFFERS_AT_ONCE 64

/* ---- may it be made present? ---- */

/* Making pages changes no file: there is none, or one that is memory. */
static bool is_memory(const struct maps_line *mapping)
{
	static const char *const names[] = { "/memfd:", "/dev/sh", "/dev/ze",
					     "/dev/hu", "/anon_h", "/SYSV" };

	if (!mapping->shared || !mapping->file)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(mapping->name, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool may_be_made(const struct maps_line *mapping, bool writes)
{
	return mapping->readable && (!writes || mapping->writable) &&
	       is_memory(mapping);
}

/* [start, end) without a hole, of memory that may be made present. */
static bool is_sound(uintptr_t start, uintptr_t end, bool writes)
{
	struct file_lines lines;
	struct maps_line mapping;
	const char *line;

	if (!file_lines_open(&lines, "/proc/self/maps"))
		return false;
	lines.cuts = true;
	while (start < end && (line = file_lines_next(&lines))) {
		if (!maps_line_parse(line, &mapping) || mapping.end <= start)
			continue;
		if (mapping.start > start || !may_be_made(&mapping, writes))
			break;
		start = mapping.end;
	}
	file_lines_end(&lines);
	return start >= end;
}

static bool may_be_locked(size_t len)
{
	struct rlimit limit;

	return shim_may_lock_all() ||
	       (!getrlimit(RLIMIT_MEMLOCK, &limit) && len <= limit.rlim_cur);
}

static void make_checked(uintptr_t start, size_t len, bool writes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end;

	if (len > UINTPTR_MAX - page || start > UINTPTR_MAX - page - len)
		return;
	end = (start + len + page - 1) & ~(page - 1);
	start &= ~(page - 1);
	if (!real_knows_advice(MADV_POPULATE_WRITE) || !may_be_locked(len) ||
	    !is_sound(start, end, writes))
		shim_leave(LEFT_REGISTER, len);
	else if (samples_are_present(start, end))
		shim_leave(LEFT_REGISTER_PRESENT, len);
	else if (shim_takes(SHIM_REGISTER, len))
		shim_populate(SHIM_REGISTER, (void *)start, end - start,
			      writes ? 0 : KTASK_POPULATE_READ);
}

/* The plain call is no point of cancellation, and leaves errno alone if it succeeds. */
static void make_present(uint64_t start, uint64_t len, bool writes)
{
	keep_errno();

	block_cancellation();
	if (shim_is_large(len))
		make_checked(start, len, writes);
}

/* Before anything is looked at; how large the call is shows later. */
static bool wants_registration(const void *from)
{
	return shim_wants(SHIM_REGISTER, SIZE_MAX, from);
}

void shim_register_range(const void *addr, size_t len, bool writes,
			 const void *from)
{
	keep_errno();

	if (wants_registration(from))
		make_present((uintptr_t)addr, len, writes);
}

/* ---- IOMMUs ---- */

/* Other devices may have requests of these numbers, but hardly with these fields. */
static void prepare_vfio(const void *from)
{
	const unsigned access =
		VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	struct vfio_iommu_type1_dma_map map;

	if (!shim_copy_in(&map, from, sizeof(map)) &&
	    map.argsz >= sizeof(map) && map.flags && !(map.flags & ~access))
		make_present(map.vaddr, map.size,
			     map.flags & VFIO_DMA_MAP_FLAG_WRITE);
}

static void prepare_iommufd(const void *from)
{
	struct ioas_map map;

	if (!shim_copy_in(&map, from, sizeof(map)) && map.size >= sizeof(map) &&
	    !map.reserved && map.flags < 8)
		make_present(map.user_va, map.length,
			     map.flags & IOAS_MAP_WRITEABLE);
}

static bool is_device(int fd)
{
	struct stat device;

	return !fstat(fd, &device) && S_ISCHR(device.st_mode);
}

void shim_register_request(const long *args)
{
	unsigned long request = (unsigned long)args[1];
	keep_errno();

	if ((request != VFIO_IOMMU_MAP_DMA && request != IOAS_MAP) ||
	    !wants_registration(NULL) || !is_device((int)args[0]))
		return;
	if (request == IOAS_MAP)
		prepare_iommufd((const void *)args[2]);
	else
		prepare_vfio((const void *)args[2]);
}

/* ---- io_uring ---- */

/* Buffers that lie side by side are one range. */
static void prepare_buffers(const struct iovec *from, uint64_t nr)
{
	struct iovec buffers[BUFFERS_AT_ONCE];
	uintptr_t start = 0, end = 0;

	if (nr > BUFFERS_MAX)
		return;
	for (uint64_t i = 0; i < nr; i++) {
		const struct iovec *buffer = &buffers[i % BUFFERS_AT_ONCE];
		size_t left = nr - i;

		if (left > BUFFERS_AT_ONCE)
			left = BUFFERS_AT_ONCE;
		if (i % BUFFERS_AT_ONCE == 0 &&
		    shim_copy_in(buffers, from + i, left * sizeof(*from)))
			return;
		if ((uintptr_t)buffer->iov_base != end) {
			make_present(start, end - start, true);
			start = (uintptr_t)buffer->iov_base;
			end = start;
		}
		end += buffer->iov_len;
	}
	make_present(start, end - start, true);
}

static void prepare_registered(const void *from)
{
	struct io_uring_rsrc_register buffers;

	if (!shim_copy_in(&buffers, from, sizeof(buffers)))
		prepare_buffers((const struct iovec *)(uintptr_t)buffers.data,
				buffers.nr);
}

static void prepare_updated(const void *from)
{
	struct io_uring_rsrc_update2 update;

	if (!shim_copy_in(&update, from, sizeof(update)))
		prepare_buffers((const struct iovec *)(uintptr_t)update.data,
				update.nr);
}

void shim_register_uring(unsigned code, const void *arg, unsigned nr,
			 const void *from)
{
	keep_errno();

	code &= ~USE_REGISTERED_RING;
	if ((code != IORING_REGISTER_BUFFERS &&
	     code != IORING_REGISTER_BUFFERS2 &&
	     code != IORING_REGISTER_BUFFERS_UPDATE) ||
	    !arg || !wants_registration(from))
		return;
	if (code == IORING_REGISTER_BUFFERS)
		prepare_buffers(arg, nr);
	else if (code == IORING_REGISTER_BUFFERS2)
		prepare_registered(arg);
	else
		prepare_updated(arg);
}
