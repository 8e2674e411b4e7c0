/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: whether pages are there is asked for a part of the range that doubles while
 * they are, since 17 samples cost as much as some hundred pages do.  One call asks for all
 * samples of a part; where the kernel refuses that, each is asked for.
 */
#include "ktest.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "device.h"
#include "refuse.h"

#define LEN (256 * MIB)
/* Of one part. */
#define SAMPLES 17
/* 32, 64 and 128 MiB, and the rest. */
#define PARTS 4
#define NO_FILTER 70

static unsigned nr_asked;

/* In place of the C library's, which does no more. */
int mincore(void *at, size_t len, unsigned char *there)
{
	__atomic_add_fetch(&nr_asked, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_mincore, at, len, there);
}

/* Return: whether as many were asked for as expected. */
static bool asks_when_registering(unsigned least, unsigned most)
{
	struct ktask_registration *registration;
	static struct device device;
	struct ktask_register_ctl ctl;
	char *at = map_private(LEN);

	memset(at, 1, LEN);
	device_init(&device);
	ctl = device_ctl(&device, 0);
	nr_asked = 0;
	ktest_check(!ktask_register(&registration, at, LEN, &ctl, NULL));
	least = nr_asked >= least && nr_asked <= most;
	ktest_check(!ktask_unregister(&registration, NULL));
	munmap(at, LEN);
	return least;
}

static void one_call_asks_for_a_part(void **state)
{
	int node;
	void *at = &node;

	(void)state;
	if (syscall(SYS_move_pages, 0, 1ul, &at, NULL, &node, 0))
		ktest_skip("no move_pages() here");
	assert_true(asks_when_registering(0, 0));
}

static int where_that_is_refused(void *arg)
{
	unsigned error = *(unsigned *)arg;

	if (!refuse_whole(SYS_move_pages, error))
		return NO_FILTER;
	ktest_check(asks_when_registering(SAMPLES, PARTS * SAMPLES));
	return 0;
}

static void parts_that_are_sampled_grow(void **state)
{
	static const unsigned errors[] = { EPERM, ENOSYS };

	(void)state;
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(errors); i++) {
		unsigned error = errors[i];
		int status = ktest_in_child(where_that_is_refused, &error);

		if (status == NO_FILTER << 8)
			ktest_skip("no seccomp filters here");
		assert_int_equal(status, 0);
	}
}

KTEST_MAIN(KTEST(one_call_asks_for_a_part), KTEST(parts_that_are_sampled_grow))
