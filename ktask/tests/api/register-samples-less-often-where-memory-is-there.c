/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: whether pages are there is asked for a part of the range that doubles while
 * they are, since 17 samples cost as much as some hundred pages do.
 */
#include "ktest.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "device.h"

#define LEN (256 * MIB)
/* Of one part. */
#define SAMPLES 17
/* 32, 64 and 128 MiB, and the rest. */
#define PARTS 4

static unsigned nr_asked;

/* In place of the C library's, which does no more. */
int mincore(void *at, size_t len, unsigned char *there)
{
	__atomic_add_fetch(&nr_asked, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_mincore, at, len, there);
}

static void parts_that_are_sampled_grow(void **state)
{
	struct ktask_registration *registration;
	static struct device device;
	struct ktask_register_ctl ctl;
	char *at = map_private(LEN);

	(void)state;
	memset(at, 1, LEN);
	device_init(&device);
	ctl = device_ctl(&device, 0);
	nr_asked = 0;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	assert_in_range(nr_asked, SAMPLES, PARTS * SAMPLES);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(parts_that_are_sampled_grow))
