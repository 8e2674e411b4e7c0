/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Requests to /dev/ktask, the kernel module's device.  Decides nothing.
 *
 * A descriptor is kept for one job only: a program may close descriptors that it
 * does not know, fork, or give up the right to open the device.
 */
#ifndef OPS_KERNEL_DEVICE_H
#define OPS_KERNEL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_PATH "/dev/ktask"

/**
 * device_open - open the device if it is there and can do what is asked below
 *
 * Return: a descriptor; -errno.
 */
int device_open(void);

void device_close(int fd);

/**
 * device_populate - make all pages of [start, end) present
 * @write: as if written to; else as if read
 * @max_threads: the caller included
 * @threads: set to how many worked on it; 0 unknown
 *
 * Return: 0; -errno, with any part of it done.
 */
int device_populate(int fd, uintptr_t start, uintptr_t end, bool write,
		    unsigned max_threads, unsigned *threads);

#endif /* OPS_KERNEL_DEVICE_H */
