/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: a deadline and a progress function end it, and nothing stays
 * registered; unregistering that was ended can be gone on with.  Progress counts
 * bytes that are registered.
 */
#include "ktest.h"

#include "device.h"

#define LEN (64 * MIB)
#define UNIT MIB

static const unsigned orders[] = { 0, KTASK_REGISTER_PARALLEL };

static struct ktask_register_ctl unit_ctl(struct device *device, unsigned order)
{
	struct ktask_register_ctl ctl;

	device_init(device);
	device->any_order = order;
	ctl = device_ctl(device, order);
	ctl.unit_bytes = UNIT;
	ctl.max_piece_bytes = UNIT;
	return ctl;
}

struct watch {
	struct device *device;
	uint64_t stop_at; /* bytes */
	uint64_t last;
	unsigned calls;
	unsigned wrong;
};

static int watch_progress(const struct ktask_progress *progress, void *arg)
{
	struct watch *watch = arg;

	watch->calls++;
	watch->wrong += progress->units_done < watch->last ||
			progress->units_done > progress->units_total ||
			progress->units_total != LEN;
	watch->last = progress->units_done;
	return progress->units_done >= watch->stop_at;
}

static struct ktask_opts watch_opts(struct watch *watch, uint64_t stop_at)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	memset(watch, 0, sizeof(*watch));
	watch->stop_at = stop_at;
	opts.progress_func = watch_progress;
	opts.progress_arg = watch;
	opts.progress_ms = 1;
	return opts;
}

static int sleep_a_while(struct device *device, char *start, char *end)
{
	usleep(2000);
	return 0;
}

static void progress_is_told(void **state)
{
	static struct device device;
	struct watch watch;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_register_ctl ctl = unit_ctl(&device, orders[i]);
		struct ktask_opts opts = watch_opts(&watch, UINT64_MAX);
		struct ktask_registration *registration;
		char *at = map_private(LEN);

		/* Of several threads the caller may do one chunk. */
		opts.max_threads = 1;
		device.before = sleep_a_while;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, &opts), 0);
		assert_true(watch.calls >= 3);
		assert_int_equal(watch.wrong, 0);
		assert_int_equal(watch.last, LEN);
		assert_int_equal(ktask_unregister(&registration, NULL), 0);
		munmap(at, LEN);
	}
}

static void cancelled_it_leaves_nothing(void **state)
{
	static struct device device;
	struct watch watch;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_register_ctl ctl = unit_ctl(&device, orders[i]);
		struct ktask_opts opts = watch_opts(&watch, LEN / 4);
		struct ktask_registration *registration;
		char *at = map_private(LEN);

		opts.max_threads = 1;
		device.before = sleep_a_while;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, &opts),
			-ECANCELED);
		assert_null(registration);
		assert_true(device.takes >= LEN / 4 / UNIT);
		assert_true(device.takes < LEN / UNIT);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong, 0);
		munmap(at, LEN);
	}
}

/* One unit is one call, but its pages are made before that by several threads. */
static void one_unit_is_not_begun_once_it_is_cancelled(void **state)
{
	static struct device device;
	struct watch watch;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_register_ctl ctl = unit_ctl(&device, orders[i]);
		struct ktask_opts opts = watch_opts(&watch, 0);
		struct ktask_registration *registration;
		char *at = map_private(LEN);

		ctl.unit_bytes = LEN;
		ctl.max_piece_bytes = LEN;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, &opts),
			-ECANCELED);
		assert_null(registration);
		assert_int_equal(device.takes, 0);
		munmap(at, LEN);
	}
}

static void deadlines_end_it(void **state)
{
	static struct device device;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_register_ctl ctl = unit_ctl(&device, orders[i]);
		struct ktask_opts opts = KTASK_OPTS_INIT;
		struct ktask_registration *registration;
		char *at = map_private(LEN);

		device.before = sleep_a_while;
		/* Far less than all sleeps of two threads together. */
		opts.deadline_ns = 20000000;
		opts.max_threads = 2;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, &opts),
			-ETIMEDOUT);
		assert_null(registration);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong, 0);
		munmap(at, LEN);
	}
}

static void unregistering_can_be_gone_on_with(void **state)
{
	static struct device device;
	struct watch watch;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_registration_info info =
			KTASK_REGISTRATION_INFO_INIT;
		struct ktask_register_ctl ctl = unit_ctl(&device, orders[i]);
		struct ktask_opts opts = watch_opts(&watch, UNIT);
		struct ktask_registration *registration;
		char *at = map_private(LEN);
		unsigned rounds = 1;

		opts.max_threads = 1;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, NULL), 0);
		while (ktask_unregister(&registration, &opts) == -ECANCELED) {
			assert_non_null(registration);
			assert_int_equal(ktask_registration_info_get(
						 registration, &info),
					 0);
			assert_int_equal(info.bytes, device_bytes(&device));
			assert_int_equal(info.pieces, device.nr);
			opts = watch_opts(&watch, UINT64_MAX);
			opts.deadline_ns = rounds == 1 ? 1 : 0;
			if (rounds++ == 1)
				assert_int_equal(
					ktask_unregister(&registration, &opts),
					-ETIMEDOUT);
			opts.deadline_ns = 0;
		}
		assert_null(registration);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.takes, LEN / UNIT);
		assert_int_equal(device.wrong, 0);
		munmap(at, LEN);
	}
}

static unsigned nr_told;

/* Helpers may take the rest back while the caller is told to stop. */
static int stop_when_all_is_done(const struct ktask_progress *progress,
				 void *arg)
{
	struct device *device = arg;
	unsigned left = LEN / UNIT;

	for (unsigned i = 0; i < 300 && left; i++) {
		usleep(1000);
		pthread_mutex_lock(&device->lock);
		left = device->nr;
		pthread_mutex_unlock(&device->lock);
	}
	nr_told += !left;
	return !left;
}

/* So that helpers have time to come. */
static int take_slowly(void *start, void *end, void *arg)
{
	usleep(1000);
	return device_unregister(start, end, arg);
}

static void what_is_done_is_no_longer_cancelled(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_registration *registration;
	static struct device device;
	struct ktask_register_ctl ctl =
		unit_ctl(&device, KTASK_REGISTER_PARALLEL);
	char *at = map_private(LEN);

	ctl.unregister_func = take_slowly;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	opts.max_threads = 2;
	opts.progress_func = stop_when_all_is_done;
	opts.progress_arg = &device;
	opts.progress_ms = 1;
	assert_int_equal(ktask_unregister(&registration, &opts), 0);
	assert_null(registration);
	assert_int_equal(device.nr, 0);
	munmap(at, LEN);
	if (!nr_told)
		ktest_skip("no helper took the rest back meanwhile");
}

KTEST_MAIN(KTEST(progress_is_told), KTEST(cancelled_it_leaves_nothing),
	   KTEST(one_unit_is_not_begun_once_it_is_cancelled),
	   KTEST(deadlines_end_it), KTEST(unregistering_can_be_gone_on_with),
	   KTEST(what_is_done_is_no_longer_cancelled))
