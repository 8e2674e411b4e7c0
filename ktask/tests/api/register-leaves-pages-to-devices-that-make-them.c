/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: a device that says it makes missing pages itself is called without making
 * them first, where several threads call it, but for those of a trial.  What fails is
 * told as for other devices: the first byte that could not be made.
 */
#include <sys/mman.h>

#include "ktest.h"

#include "device.h"

/* Too short for a trial, and long enough for one. */
#define SHORT (48 * MIB)
#define LEN (128 * MIB)
#define UNIT (2 * MIB)
#define TRIAL (4 * UNIT)
#define PAGE 4096

static unsigned nr_found_present;

static unsigned count_present(const char *start, const char *end)
{
	unsigned char there[UNIT / PAGE];
	size_t len = (size_t)(end - start);
	unsigned nr = 0;

	if (mincore((void *)start, len, there))
		return 0;
	for (size_t i = 0; i < len / PAGE; i++)
		nr += there[i] & 1;
	return nr;
}

/* As a device that pins: it ends at the first page that is not mapped. */
static int pin_pages(struct device *device, char *start, char *end)
{
	unsigned char there;

	__atomic_add_fetch(&nr_found_present, count_present(start, end),
			   __ATOMIC_RELAXED);
	for (char *pos = start; pos < end; pos += PAGE) {
		if (mincore(pos, PAGE, &there))
			return -EFAULT;
		*(volatile char *)pos = 1;
	}
	return 0;
}

static struct ktask_register_ctl pinning_ctl(struct device *device,
					     unsigned flags)
{
	struct ktask_register_ctl ctl;

	device_init(device);
	device->any_order = true;
	device->before = pin_pages;
	nr_found_present = 0;
	ctl = device_ctl(device, KTASK_REGISTER_PARALLEL | flags);
	ctl.unit_bytes = UNIT;
	ctl.max_piece_bytes = UNIT;
	return ctl;
}

static char *map_small_pages(size_t len)
{
	char *at = map_private(len);

	madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}

static void register_and_unregister(size_t len, unsigned flags)
{
	static struct device device;
	struct ktask_register_ctl ctl = pinning_ctl(&device, flags);
	struct ktask_registration *registration;
	char *at = map_small_pages(len);

	assert_int_equal(ktask_register(&registration, at, len, &ctl, NULL), 0);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(device.nr, 0);
	assert_int_equal(device.wrong, 0);
	munmap(at, len);
}

static void it_finds_no_page(void **state)
{
	register_and_unregister(SHORT, KTASK_REGISTER_MAKES_PAGES);
	assert_int_equal(nr_found_present, 0);
}

static void it_finds_the_pages_of_a_trial(void **state)
{
	register_and_unregister(LEN, KTASK_REGISTER_MAKES_PAGES);
	assert_true(nr_found_present >= TRIAL / PAGE);
}

static void others_find_all_pages(void **state)
{
	register_and_unregister(LEN, 0);
	assert_int_equal(nr_found_present, LEN / PAGE);
}

static void a_hole_is_told_to_the_byte(void **state)
{
	static struct device device;

	for (size_t i = 0; i < LEN / UNIT; i += 5) {
		struct ktask_register_ctl ctl =
			pinning_ctl(&device, KTASK_REGISTER_MAKES_PAGES);
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_opts opts = KTASK_OPTS_INIT;
		struct ktask_registration *registration;
		char *at = map_small_pages(LEN);
		size_t hole = i * UNIT + (3 * i + 1) * PAGE;

		opts.result = &result;
		munmap(at + hole, PAGE);
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, &opts),
			-ENOMEM);
		assert_int_equal(result.fail_offset, hole);
		assert_null(registration);
		assert_int_equal(device.nr, 0);
		munmap(at, LEN);
	}
}

KTEST_MAIN(KTEST(it_finds_no_page), KTEST(it_finds_the_pages_of_a_trial),
	   KTEST(others_find_all_pages), KTEST(a_hole_is_told_to_the_byte))
