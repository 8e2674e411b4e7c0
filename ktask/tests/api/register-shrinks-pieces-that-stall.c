/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: a device whose calls sleep for long is given less in the next ones, so
 * that they fit into the stall budget; a fast one is given more.
 *
 * A busy machine makes calls longer and so pieces smaller, never larger.
 */
#include "ktest.h"

#include "device.h"

#define LEN (128 * MIB)
#define BUDGET_US 20000

/* More than this in one call sleeps far beyond the budget. */
#define EASY (2 * MIB)

struct stalls {
	size_t sizes[DEVICE_PIECES];
	unsigned nr;
};

static int sleep_for_large(struct device *device, char *start, char *end)
{
	struct stalls *stalls = device->arg;
	size_t bytes = (size_t)(end - start);

	pthread_mutex_lock(&device->lock);
	stalls->sizes[stalls->nr++] = bytes;
	pthread_mutex_unlock(&device->lock);
	if (bytes > EASY)
		usleep(10 * BUDGET_US);
	return 0;
}

static void register_with(struct device *device, unsigned flags)
{
	static struct stalls stalls;
	struct ktask_register_ctl ctl = device_ctl(device, flags);
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_registration *registration;
	char *at = map_private(LEN);

	stalls.nr = 0;
	opts.max_threads = 2;
	device->arg = &stalls;
	ctl.stall_us = BUDGET_US;
	ctl.unit_bytes = page_bytes();
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, &opts),
			 0);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(device->wrong, 0);
	munmap(at, LEN);
}

/* After a call of ten budgets a twentieth fits into half of one. */
static void one_long_call_shrinks_the_next(void **state)
{
	static struct device device;
	struct stalls *stalls;

	device_init(&device);
	device.before = sleep_for_large;
	register_with(&device, 0);
	stalls = device.arg;
	assert_true(stalls->nr > 10);
	for (unsigned i = 1; i < stalls->nr; i++)
		if (stalls->sizes[i - 1] > EASY)
			assert_true(stalls->sizes[i] <=
				    stalls->sizes[i - 1] / 20);
}

static void so_it_is_with_several_at_once(void **state)
{
	static struct device device;
	struct stalls *stalls;
	unsigned nr_large = 0;

	device_init(&device);
	device.any_order = true;
	device.before = sleep_for_large;
	register_with(&device, KTASK_REGISTER_PARALLEL);
	stalls = device.arg;
	for (unsigned i = 0; i < stalls->nr; i++)
		nr_large += stalls->sizes[i] > EASY;
	/* After one it takes eight calls until a piece is as large again, and two
	 * threads may be in one at once.  Without learning all would be. */
	assert_true(nr_large <= stalls->nr / 3 + 2);
}

static void fast_calls_are_given_more(void **state)
{
	static struct device device;
	struct ktask_register_ctl ctl;
	struct ktask_registration *registration;
	char *at = map_private(LEN);

	device_init(&device);
	ctl = device_ctl(&device, KTASK_REGISTER_PRESENT);
	/* No call takes that long. */
	ctl.stall_us = 4000000000u;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	assert_true(device.nr <= 4);
	assert_true(device.largest >= 64 * MIB);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(one_long_call_shrinks_the_next),
	   KTEST(so_it_is_with_several_at_once),
	   KTEST(fast_calls_are_given_more))
