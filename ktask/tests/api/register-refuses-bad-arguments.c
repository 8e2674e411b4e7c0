/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: what cannot be is refused before the device is called, allocations
 * that are refused leave nothing registered, and errno is kept.
 */
#include "ktest.h"

#include "device.h"
#include "failalloc.h"

#define LEN (48 * MIB)

static struct device device;

static int attempt_with(const struct ktask_register_ctl *ctl, void *at,
			size_t len, const struct ktask_opts *opts)
{
	struct ktask_registration *registration = (void *)1;
	int error;

	errno = 1234;
	error = ktask_register(&registration, at, len, ctl, opts);
	assert_int_equal(errno, 1234);
	assert_null(registration);
	assert_int_equal(device.calls, 0);
	return error;
}

static void what_cannot_be_is_refused(void **state)
{
	struct ktask_register_ctl good, ctl;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_registration *nothing = NULL;
	static char at[4096];

	device_init(&device);
	good = ctl = device_ctl(&device, 0);
	assert_int_equal(ktask_register(NULL, at, 1, &good, NULL), -EINVAL);
	assert_int_equal(attempt_with(NULL, at, 1, NULL), -EINVAL);
	assert_int_equal(attempt_with(&good, NULL, 1, NULL), -EINVAL);
	assert_int_equal(attempt_with(&good, at, SIZE_MAX, NULL), -EINVAL);
	assert_int_equal(attempt_with(&good, at, 0, NULL), 0);
	ctl.register_func = NULL;
	assert_int_equal(attempt_with(&ctl, at, 1, NULL), -EINVAL);
	ctl = good;
	ctl.unregister_func = NULL;
	assert_int_equal(attempt_with(&ctl, at, 1, NULL), -EINVAL);
	ctl = good;
	ctl.flags = 0x80;
	assert_int_equal(attempt_with(&ctl, at, 1, NULL), -EINVAL);
	ctl = good;
	ctl.reserved[2] = 1;
	assert_int_equal(attempt_with(&ctl, at, 1, NULL), -EINVAL);
	ctl = good;
	ctl.struct_size = 8;
	assert_int_equal(attempt_with(&ctl, at, 1, NULL), -EINVAL);
	ctl.struct_size = 5000;
	assert_int_equal(attempt_with(&ctl, at, 1, NULL), -E2BIG);
	opts.flags = 0x80;
	assert_int_equal(attempt_with(&good, at, 1, &opts), -EINVAL);
	assert_int_equal(ktask_unregister(NULL, NULL), -EINVAL);
	assert_int_equal(ktask_unregister(&nothing, NULL), 0);
	assert_int_equal(ktask_registration_info_get(NULL, NULL), -EINVAL);
	assert_int_equal(ktask_registration_piece(NULL, 0, NULL, NULL),
			 -EINVAL);
}

static void register_without_memory(unsigned flags)
{
	char *at = map_private(LEN);
	unsigned nth = 0, failed;

	do {
		struct ktask_registration *registration;
		struct ktask_register_ctl ctl;
		int error;

		device_init(&device);
		device.any_order = flags;
		ctl = device_ctl(&device, flags);
		ctl.unit_bytes = MIB;
		ctl.max_piece_bytes = MIB;
		failalloc_arm(++nth);
		error = ktask_register(&registration, at, LEN, &ctl, NULL);
		failed = failalloc_disarm();
		assert_true(!error || (failed && error == -ENOMEM));
		assert_int_equal(device_bytes(&device), error ? 0 : LEN);
		failalloc_arm_from(1, FAILALLOC_ALL);
		if (!error)
			error = ktask_unregister(&registration, NULL);
		failalloc_disarm();
		assert_true(!error || error == -ENOMEM);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong, 0);
		ktask_discard(at, LEN, 0);
	} while (failed);
	munmap(at, LEN);
}

static void refused_allocations_leave_nothing(void **state)
{
	register_without_memory(0);
	register_without_memory(KTASK_REGISTER_PARALLEL);
}

KTEST_MAIN(KTEST(what_cannot_be_is_refused),
	   KTEST(refused_allocations_leave_nothing))
