/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: the kernel is asked once for the unit and once for chunk edges, whatever the
 * number of windows in which pages are made.
 */
#include "ktest.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "device.h"

#define LEN (256 * MIB)

static unsigned nr_opened;

/* In place of the C library's; without O_CREAT there is no mode. */
int open(const char *path, int flags, ...)
{
	if (!strcmp(path, "/proc/self/maps") ||
	    !strcmp(path, "/proc/self/smaps"))
		__atomic_add_fetch(&nr_opened, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static void mappings_are_read_twice(void **state)
{
	struct ktask_registration *registration;
	static struct device device;
	struct ktask_register_ctl ctl;
	char *at = map_private(LEN);

	(void)state;
	device_init(&device);
	ctl = device_ctl(&device, 0);
	nr_opened = 0;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	/* Windows of 128, 64, 32, 16, 8 and 8 MiB. */
	assert_true(device.nr >= 6);
	assert_in_range(nr_opened, 1, 2);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(mappings_are_read_twice))
