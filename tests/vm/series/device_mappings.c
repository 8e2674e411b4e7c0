/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Mapping memory for the device and taking it back, and what is pinned by that.
 *
 * Children have the container of PID 1, so that what one of them has mapped stays
 * when it ends.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../vfio_device.h"
#include "device_mappings.h"
#include "facts.h"

static int container = -1;

bool open_container(void)
{
	container = vfio_open();
	return container >= 0;
}

int map_for_device(void *addr, size_t len, uint64_t iova)
{
	return -vfio_map(container, addr, len, iova);
}

long unmap_for_device(size_t len, uint64_t iova)
{
	return (long)vfio_unmap(container, len, iova);
}

void unmap_all(void)
{
	vfio_unmap_all(container);
}

long pinned_pages(void)
{
	write_text("/proc/sys/vm/stat_refresh", "1");
	return number_in("/proc/vmstat", "nr_foll_pin_acquired ") -
	       number_in("/proc/vmstat", "nr_foll_pin_released ");
}

static int drop_capability(unsigned number)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -1;
	data[number / 32].effective &= ~(1u << number % 32);
	return (int)syscall(SYS_capset, &head, data);
}

/* Root may still ask for exact counts. */
bool limit_locked_memory(size_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	return !setrlimit(RLIMIT_MEMLOCK, &limit) &&
	       !drop_capability(CAP_IPC_LOCK);
}
