/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * /dev/ktask as one job sees it.
 *
 * A request of length zero does nothing.  It finds out whether the file at that path is
 * the device, and of a version that knows the request.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <uapi/linux/ktask.h>

#include "kernel_device.h"

int device_populate(int fd, uintptr_t start, uintptr_t end, bool write,
		    unsigned max_threads, unsigned *threads)
{
	struct ktask_mem mem = {
		.size = sizeof(mem),
		.flags = write ? KTASK_MEM_WRITE : 0,
		.addr = start,
		.len = end - start,
		.max_threads = max_threads,
	};
	int error =
		syscall(SYS_ioctl, fd, KTASK_IOC_POPULATE, &mem) ? -errno : 0;

	*threads = mem.threads;
	return error;
}

int device_open(void)
{
	int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, DEVICE_PATH, flags);
	unsigned threads;
	int error;

	if (fd < 0)
		return -errno;
	error = device_populate(fd, 0, 0, true, 0, &threads);
	if (!error)
		return fd;
	device_close(fd);
	return error;
}

void device_close(int fd)
{
	syscall(SYS_close, fd);
}
