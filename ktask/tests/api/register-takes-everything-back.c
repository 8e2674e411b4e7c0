/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: where a call of the device fails, whichever it is, every piece is
 * taken back, the last first, and the first byte that is not registered is told.
 * A piece that cannot be taken back, whichever it is, is given up, and keeps no
 * other from being taken back.
 */
#include "ktest.h"

#include "device.h"

#define LEN (12 * MIB)
#define UNIT MIB

struct attempt {
	struct device *device;
	struct ktask_result result;
	struct ktask_registration *registration;
	int error;
};

static void attempt_to_register(struct attempt *attempt, unsigned flags,
				char *at)
{
	struct ktask_register_ctl ctl = device_ctl(attempt->device, flags);
	struct ktask_opts opts = KTASK_OPTS_INIT;

	memset(&attempt->result, 0, sizeof(attempt->result));
	attempt->result.struct_size = sizeof(attempt->result);
	opts.result = &attempt->result;
	ctl.unit_bytes = UNIT;
	ctl.max_piece_bytes = UNIT;
	attempt->error =
		ktask_register(&attempt->registration, at, LEN, &ctl, &opts);
}

static void every_call_may_fail(void **state)
{
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	for (unsigned call = 1; call <= LEN / UNIT; call++) {
		device_init(&device);
		device.fail_call = call;
		attempt_to_register(&attempt, 0, at);
		assert_int_equal(attempt.error, -ENODEV);
		assert_null(attempt.registration);
		assert_int_equal(attempt.result.error, -ENODEV);
		assert_int_equal(attempt.result.fail_error, -ENODEV);
		assert_int_equal(attempt.result.fail_offset, (call - 1) * UNIT);
		assert_int_equal(attempt.result.units, (call - 1) * UNIT);
		assert_int_equal(device.calls, call);
		assert_int_equal(device.takes, call - 1);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong, 0);
	}
	munmap(at, LEN);
}

/* In any order; what failed is told by the address. */
static int fail_there(struct device *device, char *start, char *end)
{
	return start == device->arg ? -EBUSY : 0;
}

static void every_piece_may_fail_among_several(void **state)
{
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	for (size_t offset = 0; offset < LEN; offset += UNIT) {
		device_init(&device);
		device.any_order = true;
		device.before = fail_there;
		device.arg = at + offset;
		attempt_to_register(&attempt, KTASK_REGISTER_PARALLEL, at);
		assert_int_equal(attempt.error, -EBUSY);
		assert_int_equal(attempt.result.fail_offset, offset);
		assert_int_equal(device.takes, attempt.result.units / UNIT);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong, 0);
	}
	munmap(at, LEN);
}

/* From the fifth call on it is not there. */
static int lose_device(struct device *device, char *start, char *end)
{
	unsigned calls;

	pthread_mutex_lock(&device->lock);
	calls = device->calls;
	pthread_mutex_unlock(&device->lock);
	return calls < 5 ? 0 : -ENODEV;
}

/* Once it has gone nothing can be taken back: all is tried, and told is why. */
static void a_device_may_disappear(void **state)
{
	const unsigned flags[] = { 0, KTASK_REGISTER_PARALLEL,
				   KTASK_REGISTER_PARALLEL |
					   KTASK_REGISTER_MAKES_PAGES };
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(flags); i++) {
		device_init(&device);
		device.any_order = flags[i];
		device.before = lose_device;
		device.take_error = -EIO;
		attempt_to_register(&attempt, flags[i], at);
		assert_int_equal(attempt.error, -ENODEV);
		assert_null(attempt.registration);
		/* Of several at once the fifth may have begun before the fourth. */
		assert_in_range(device.takes, flags[i] ? 0 : 4, 4);
		assert_int_equal(device.takes, attempt.result.units / UNIT);
		assert_int_equal(device.wrong, 0);

		device_init(&device);
		device.any_order = flags[i];
		attempt_to_register(&attempt, flags[i], at);
		assert_int_equal(attempt.error, 0);
		device.take_error = -EIO;
		assert_int_equal(ktask_unregister(&attempt.registration, NULL),
				 -EIO);
		assert_null(attempt.registration);
		assert_int_equal(device.takes, LEN / UNIT);
		assert_int_equal(device.wrong, 0);
	}
	munmap(at, LEN);
}

/* Codes of the program's own come through as they are. */
static void codes_pass_unchanged(void **state)
{
	const int codes[] = { 1, 77, -1, -100000 };
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(codes); i++) {
		device_init(&device);
		device.any_order = true;
		device.fail_call = 3;
		device.fail_error = codes[i];
		attempt_to_register(&attempt, i % 2 * KTASK_REGISTER_PARALLEL,
				    at);
		assert_int_equal(attempt.error, codes[i]);
	}
	munmap(at, LEN);
}

/* A device that takes several calls at once may hear from one thread only. */
static void one_thread_takes_the_last_one_first(void **state)
{
	static struct device device;
	struct attempt attempt = { .device = &device };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	char *at = map_private(LEN);

	device_init(&device);
	device.any_order = true;
	attempt_to_register(&attempt, KTASK_REGISTER_PARALLEL, at);
	assert_int_equal(attempt.error, 0);
	device.any_order = false;
	opts.max_threads = 1;
	assert_int_equal(ktask_unregister(&attempt.registration, &opts), 0);
	assert_int_equal(device.takes, LEN / UNIT);
	assert_int_equal(device.wrong, 0);
	munmap(at, LEN);
}

/* ---- taking back fails ---- */

static const unsigned both_ways[] = { 0, KTASK_REGISTER_PARALLEL };

static void begin_registered(struct attempt *attempt, unsigned flags, char *at)
{
	device_init(attempt->device);
	attempt->device->any_order = flags;
	attempt_to_register(attempt, flags, at);
	assert_int_equal(attempt->error, 0);
}

static void attempt_to_unregister(struct attempt *attempt,
				  ktask_progress_func progress)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	memset(&attempt->result, 0, sizeof(attempt->result));
	attempt->result.struct_size = sizeof(attempt->result);
	opts.result = &attempt->result;
	opts.progress_func = progress;
	attempt->error = ktask_unregister(&attempt->registration, &opts);
}

/* Each piece was tried once, and nothing is left to try. */
static void check_that_all_were_tried(const struct attempt *attempt)
{
	assert_null(attempt->registration);
	assert_int_equal(attempt->device->takes, LEN / UNIT);
	assert_int_equal(attempt->device->nr, 0);
	assert_int_equal(attempt->device->wrong, 0);
	assert_int_equal(attempt->result.error, attempt->error);
	assert_int_equal(attempt->result.chunks, LEN / UNIT);
	assert_int_equal(attempt->result.units, LEN);
}

/* Slow enough for helpers to take part. */
static int fail_there_later(struct device *device, char *start, char *end)
{
	usleep(200);
	return fail_there(device, start, end);
}

static void every_piece_may_be_given_up(void **state)
{
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	for (size_t i = 0; i < 2 * LEN / UNIT; i++) {
		size_t offset = i / 2 * UNIT;

		begin_registered(&attempt, both_ways[i % 2], at);
		device.answer_take = fail_there_later;
		device.arg = at + offset;
		attempt_to_unregister(&attempt, NULL);
		assert_int_equal(attempt.error, -EBUSY);
		check_that_all_were_tried(&attempt);
		assert_int_equal(attempt.result.fail_error, -EBUSY);
		assert_ptr_equal(attempt.result.fail_pos, at + offset);
		assert_int_equal(attempt.result.fail_offset, offset);
	}
	munmap(at, LEN);
}

/* By its number, from 1 on. */
static int fail_by_number(struct device *device, char *start, char *end)
{
	return (int)((size_t)(start - (char *)device->arg) / UNIT) + 1;
}

/* In order that is the last piece. */
static void of_several_errors_the_first_is_told(void **state)
{
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(both_ways); i++) {
		begin_registered(&attempt, both_ways[i], at);
		device.answer_take = fail_by_number;
		device.arg = at;
		attempt_to_unregister(&attempt, NULL);
		check_that_all_were_tried(&attempt);
		if (!both_ways[i])
			assert_int_equal(attempt.error, LEN / UNIT);
		assert_in_range(attempt.error, 1, LEN / UNIT);
		assert_int_equal(attempt.result.fail_error, attempt.error);
		assert_int_equal(attempt.result.fail_offset,
				 (size_t)(attempt.error - 1) * UNIT);
	}
	munmap(at, LEN);
}

static int stop_at_once(const struct ktask_progress *progress, void *arg)
{
	return 1;
}

static void what_was_given_up_is_not_tried_again(void **state)
{
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	begin_registered(&attempt, 0, at);
	device.answer_take = fail_there;
	device.arg = at + LEN - UNIT;
	attempt_to_unregister(&attempt, stop_at_once);
	assert_int_equal(attempt.error, -ECANCELED);
	assert_non_null(attempt.registration);
	assert_int_equal(device.takes, 1);
	assert_int_equal(attempt.result.fail_error, -EBUSY);
	assert_int_equal(attempt.result.fail_offset, LEN - UNIT);
	attempt_to_unregister(&attempt, NULL);
	assert_int_equal(attempt.error, 0);
	assert_null(attempt.registration);
	assert_int_equal(device.takes, LEN / UNIT);
	assert_int_equal(device.wrong, 0);
	munmap(at, LEN);
}

/* And why it was undone is told all the same. */
static void undoing_goes_on_behind_any_piece(void **state)
{
	static struct device device;
	struct attempt attempt = { .device = &device };
	char *at = map_private(LEN);

	for (size_t i = 0; i < 2 * LEN / UNIT; i++) {
		unsigned flags = both_ways[i % 2];

		device_init(&device);
		device.any_order = flags;
		device.fail_call = LEN / UNIT;
		device.answer_take = fail_there;
		device.arg = at + i / 2 * UNIT;
		attempt_to_register(&attempt, flags, at);
		assert_int_equal(attempt.error, -ENODEV);
		assert_int_equal(attempt.result.fail_error, -ENODEV);
		if (!flags)
			assert_int_equal(attempt.result.fail_offset,
					 LEN - UNIT);
		assert_null(attempt.registration);
		assert_int_equal(device.takes, LEN / UNIT - 1);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong, 0);
	}
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(every_call_may_fail),
	   KTEST(every_piece_may_fail_among_several),
	   KTEST(a_device_may_disappear), KTEST(codes_pass_unchanged),
	   KTEST(one_thread_takes_the_last_one_first),
	   KTEST(every_piece_may_be_given_up),
	   KTEST(of_several_errors_the_first_is_told),
	   KTEST(what_was_given_up_is_not_tried_again),
	   KTEST(undoing_goes_on_behind_any_piece))
