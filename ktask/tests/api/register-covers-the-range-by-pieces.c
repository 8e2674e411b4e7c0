/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: pieces cover the range once, in order or several at once, with their
 * edges where the program wants them; their pages are there before the device is
 * called.  Unregistering takes each back.
 */
#include "ktest.h"

#include "device.h"

#define LEN (128 * MIB)

static const unsigned orders[] = { 0, KTASK_REGISTER_PARALLEL };

static void register_all(struct device *device, unsigned flags, char *at,
			 size_t len, size_t unit_bytes)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct ktask_register_ctl ctl = device_ctl(device, flags);
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_registration *registration;
	char *pos = at;
	void *start, *end;
	unsigned nr;

	opts.result = &result;
	ctl.unit_bytes = unit_bytes;
	device->any_order = flags & KTASK_REGISTER_PARALLEL;
	assert_int_equal(ktask_register(&registration, at, len, &ctl, &opts),
			 0);
	assert_non_null(registration);
	assert_int_equal(device_bytes(device), len);
	assert_int_equal(ktask_registration_info_get(registration, &info), 0);
	assert_int_equal(info.bytes, len);
	assert_int_equal(info.pieces, device->nr);
	assert_true(info.longest_ns <= info.calls_ns);
	for (nr = 0; !ktask_registration_piece(registration, nr, &start, &end);
	     nr++) {
		assert_ptr_equal(start, pos);
		pos = end;
		if (unit_bytes && pos < at + len)
			assert_int_equal((size_t)(pos - at) % unit_bytes, 0);
	}
	assert_ptr_equal(pos, at + len);
	assert_int_equal(nr, device->nr);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.units, len);
	assert_int_equal(result.chunks, nr);
	assert_int_equal(result.largest_chunk, device->largest);
	assert_true(result.threads >= 1);
	assert_int_equal(ktask_unregister(&registration, &opts), 0);
	assert_null(registration);
	assert_int_equal(result.units, len);
	assert_int_equal(device->takes, nr);
	assert_int_equal(device->nr, 0);
	assert_int_equal(device->wrong, 0);
}

static int pages_are_there(struct device *device, char *start, char *end)
{
	char *first = (char *)((uintptr_t)start & ~(page_bytes() - 1));
	size_t len = (size_t)(end - first + (ptrdiff_t)page_bytes() - 1) &
		     ~(page_bytes() - 1);

	return pages_present(first, len) * page_bytes() == len ? 0 : -EIO;
}

static void pages_are_made_first(void **state)
{
	static struct device device;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		char *at = map_private(LEN);

		device_init(&device);
		device.before = pages_are_there;
		register_all(&device, orders[i], at, LEN, 0);
		munmap(at, LEN);
	}
}

static void what_is_there_is_left_as_it_is(void **state)
{
	static struct device device;
	char *at = map_private(LEN);

	memset(at, 7, LEN);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		device_init(&device);
		register_all(&device, orders[i], at, LEN, 0);
		device_init(&device);
		register_all(&device, orders[i] | KTASK_REGISTER_PRESENT, at,
			     LEN, 0);
	}
	for (size_t i = 0; i < LEN; i++)
		if (at[i] != 7)
			fail_msg("byte %zu was changed", i);
	munmap(at, LEN);
}

/* A piece then ends only where the budget says so: at 4, 20 and 84 MiB. */
static void memory_that_is_there_takes_few_pieces(void **state)
{
	struct ktask_registration *registration;
	static struct device device;
	char *at = map_private(LEN);
	struct ktask_register_ctl ctl;

	memset(at, 1, LEN);
	device_init(&device);
	ctl = device_ctl(&device, 0);
	ctl.stall_us = UINT32_MAX;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	assert_in_range(device.nr, 1, 4);
	assert_int_equal(device_bytes(&device), LEN);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	munmap(at, LEN);
}

/* Helpers have nothing to make beside the last calls: these are for little.  Before, half
 * of the rest is made at once. */
static void the_last_pages_to_be_made_are_few(void **state)
{
	struct ktask_registration *registration;
	static struct device device;
	char *at = map_private(LEN);
	struct ktask_register_ctl ctl;

	device_init(&device);
	ctl = device_ctl(&device, 0);
	ctl.stall_us = UINT32_MAX;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	assert_int_equal(device.pieces[device.nr - 1].end - at, LEN);
	assert_in_range(device.pieces[device.nr - 1].end -
				device.pieces[device.nr - 1].start,
			1, 8 * MIB);
	assert_in_range(device.largest, LEN / 4 + 1, LEN / 2);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	munmap(at, LEN);
}

static void memory_that_is_there_in_parts_is_made_whole(void **state)
{
	static struct device device;
	char *at = map_private(LEN);

	memset(at, 1, LEN / 2);
	memset(at + LEN * 3 / 4, 1, LEN / 4);
	device_init(&device);
	device.before = pages_are_there;
	register_all(&device, 0, at, LEN, 0);
	munmap(at, LEN);
}

static void pages_are_left_out_on_request(void **state)
{
	static struct device device;
	char *at = map_private(LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		device_init(&device);
		register_all(&device, orders[i] | KTASK_REGISTER_PRESENT, at,
			     LEN, 0);
	}
	assert_int_equal(pages_present(at, LEN), 0);
	munmap(at, LEN);
}

static void edges_are_where_the_program_wants_them(void **state)
{
	const size_t units[] = { 0, 1, 4096, 3 * MIB, 1000001, 2 * LEN };
	const size_t starts[] = { 0, 1, 4096, 123457 };
	const size_t lens[] = { 1, 4096, 10 * MIB, 40 * MIB + 1 };
	static struct device device;
	char *at = map_private(LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(units); i++)
		for (unsigned j = 0; j < KTEST_ARRAY_SIZE(starts); j++)
			for (unsigned k = 0; k < KTEST_ARRAY_SIZE(lens); k++) {
				device_init(&device);
				register_all(&device, orders[(i + j + k) % 2],
					     at + starts[j], lens[k], units[i]);
			}
	munmap(at, LEN);
}

static void pieces_keep_their_bound(void **state)
{
	static struct device device;
	char *at = map_private(LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_register_ctl ctl;
		struct ktask_registration *registration;

		device_init(&device);
		device.any_order = true;
		ctl = device_ctl(&device, orders[i]);
		ctl.max_piece_bytes = 5 * MIB;
		ctl.unit_bytes = MIB;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, NULL), 0);
		assert_true(device.largest <= 5 * MIB);
		assert_int_equal(ktask_unregister(&registration, NULL), 0);
		assert_int_equal(device.wrong, 0);
	}
	munmap(at, LEN);
}

/* Files that end early have no pages behind that: the device says so. */
static int as_a_device_would(struct device *device, char *start, char *end)
{
	return end > (char *)device->arg ? -EFAULT : 0;
}

static void memory_without_pages_is_for_the_device(void **state)
{
	static struct device device;
	int fd = memory_file(LEN / 2);
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ktask_register_ctl ctl;
	struct ktask_registration *registration;

	assert_ptr_not_equal(at, MAP_FAILED);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		device_init(&device);
		register_all(&device, orders[i], at, LEN, 0);
		device_init(&device);
		device.any_order = true;
		device.before = as_a_device_would;
		device.arg = at + LEN / 2;
		ctl = device_ctl(&device, orders[i]);
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, NULL),
			-EFAULT);
		assert_int_equal(device.nr, 0);
	}
	munmap(at, LEN);
	close(fd);
}

static void holes_are_told(void **state)
{
	static struct device device;
	char *at = map_private(LEN);

	munmap(at + 77 * MIB, page_bytes());
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_opts opts = KTASK_OPTS_INIT;
		struct ktask_registration *registration;
		struct ktask_register_ctl ctl;

		device_init(&device);
		device.any_order = true;
		ctl = device_ctl(&device, orders[i]);
		opts.result = &result;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, &opts),
			-ENOMEM);
		assert_null(registration);
		assert_int_equal(result.fail_offset, 77 * MIB);
		assert_ptr_equal(result.fail_pos, at + 77 * MIB);
		assert_int_equal(result.fail_error, -ENOMEM);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong, 0);
	}
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(pages_are_made_first), KTEST(what_is_there_is_left_as_it_is),
	   KTEST(memory_that_is_there_takes_few_pieces),
	   KTEST(the_last_pages_to_be_made_are_few),
	   KTEST(memory_that_is_there_in_parts_is_made_whole),
	   KTEST(pages_are_left_out_on_request),
	   KTEST(edges_are_where_the_program_wants_them),
	   KTEST(pieces_keep_their_bound),
	   KTEST(memory_without_pages_is_for_the_device), KTEST(holes_are_told))
