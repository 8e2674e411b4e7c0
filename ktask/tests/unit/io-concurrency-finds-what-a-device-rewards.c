/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * However many requests a device rewards, a job that waits for it soon has as
 * many threads as that takes, give or take a doubling; it stays there, also
 * where windows differ by a fifth, follows when the device changes, and hands
 * what it found to the next job.
 *
 * Simulated: chunks end at the device's rate, samples are taken each millisecond.
 */
#include "ktest.h"
#include "support/curve.h"

#include "core/io_concurrency.h"

#define MS 1000000
#define CHUNK 1000
#define LEAST 1
#define MOST 64

/* Chunks a millisecond of one thread alone. */
#define CHUNKS_MS 1.0

static const struct curve devices[] = {
	{ "one at a time", NULL, { { 1, 1 }, { 2, 0.9 }, { 8, 0.5 } }, 1 },
	{ "four", NULL, { { 1, 1 }, { 2, 1.9 }, { 4, 3.2 }, { 8, 2.6 } }, 4 },
	{ "thirty-two",
	  NULL,
	  { { 1, 1 }, { 8, 8 }, { 16, 15 }, { 32, 27 }, { 64, 24 } },
	  32 },
};

#define NR_DEVICES KTEST_ARRAY_SIZE(devices)

struct device {
	struct kt_io io;
	const struct curve *curve;
	double speed;
	double noise; /* of the rate in each 16 ms, evenly both ways */
	uint64_t random;
	uint64_t now_ns;
	double luck;
	double units, all; /* of this job, and of all */
	unsigned changes;
};

static void plug_device(struct device *device, const struct curve *curve)
{
	*device = (struct device){ .curve = curve, .speed = 1, .luck = 1 };
	device->now_ns = MS;
	kt_io_begin(&device->io, LEAST, MOST, KT_IO_START);
}

static void draw_luck(struct device *device)
{
	double part = (double)ktest_random_below(&device->random, 1 << 20) /
		      (1 << 20);

	device->luck = 1 + device->noise * (2 * part - 1);
}

static void step_device(struct device *device)
{
	unsigned before = device->io.threads, threads;
	double done = curve_rate(device->curve, before) * CHUNKS_MS * CHUNK *
		      device->speed;

	if (device->noise > 0 && device->now_ns / MS % 16 == 0)
		draw_luck(device);
	device->now_ns += MS;
	device->units += done * device->luck;
	device->all += done;
	threads = kt_io_step(&device->io, device->now_ns,
			     (uint64_t)device->units, CHUNK);
	assert_in_range(threads, LEAST, MOST);
	assert_int_equal(threads, device->io.threads);
	device->changes += threads != before;
}

/* Return: the mean rate, as a part of the best there is. */
static double run_device(struct device *device, unsigned ms)
{
	double before = device->all;
	double best = curve_best(device->curve, MOST) * CHUNKS_MS * CHUNK *
		      device->speed;

	for (unsigned i = 0; i < ms; i++)
		step_device(device);
	return (device->all - before) / (best * ms);
}

static void check_rate(const struct device *device, double got, double least)
{
	if (got < least)
		print_message("# %s: base %u, %u threads, %u changes: %.3f\n",
			      device->curve->name, device->io.base,
			      device->io.threads, device->changes, got);
	assert_true(got >= least);
}

static void found_soon_and_held(void **state)
{
	for (size_t i = 0; i < NR_DEVICES; i++) {
		struct device device;

		plug_device(&device, &devices[i]);
		check_rate(&device, run_device(&device, 1000), 0.80);
		assert_int_equal(device.io.base, devices[i].best);
		check_rate(&device, run_device(&device, 2000), 0.95);
		assert_int_equal(device.io.base, devices[i].best);
	}
}

/* Chunks of 50 ms: not each window waits for eight of each thread. */
static void slow_devices_take_some_chunks(void **state)
{
	struct device device;

	plug_device(&device, &devices[2]);
	device.speed = 0.02;
	run_device(&device, 2000);
	assert_int_equal(device.io.base, 32);
}

/* Trials become rare. */
static void held_counts_are_seldom_left(void **state)
{
	for (size_t i = 0; i < NR_DEVICES; i++) {
		struct device device;

		plug_device(&device, &devices[i]);
		run_device(&device, 20000);
		device.changes = 0;
		check_rate(&device, run_device(&device, 20000), 0.99);
		assert_in_range(device.changes, 0, 8);
	}
}

/* A single run may go astray for a while; all together may not. */
static void noise_does_little_harm(void **state)
{
	uint64_t random = ktest_seed();

	for (size_t i = 0; i < NR_DEVICES; i++) {
		double sum = 0;

		for (unsigned n = 0; n < 100; n++) {
			struct device device;
			double got;

			plug_device(&device, &devices[i]);
			device.noise = 0.2;
			device.random = ktest_random(&random);
			run_device(&device, 1000);
			got = run_device(&device, 3000);
			check_rate(&device, got, 0.50);
			sum += got;
		}
		print_message("# %s, 20 %% noise: %.3f of the best\n",
			      devices[i].name, sum / 100);
		assert_true(sum / 100 > 0.90);
	}
}

/* Return: the best count after @nr windows of rates @one and @other in turn. */
static unsigned base_after(unsigned nr, unsigned one, unsigned other)
{
	struct kt_io io;
	uint64_t units = 0;

	kt_io_begin(&io, LEAST, KT_IO_START, KT_IO_START);
	for (unsigned i = 1; i <= nr; i++) {
		units += 1000 * (i % 2 ? one : other);
		kt_io_step(&io, i * 2ull * KT_IO_WINDOW_NS, units, 1);
	}
	return io.base;
}

/* One thread too few costs more than one too many: all leave where it is sure
 * that they are of no use, and none where rates scatter too much to say. */
static void who_may_be_of_use_stays(void **state)
{
	assert_int_equal(base_after(100, 100, 100), LEAST);
	assert_int_equal(base_after(100, 60, 140), KT_IO_START);
}

/* Any device may become any other, and twice as slow. */
static void change_is_followed(void **state)
{
	for (size_t i = 0; i < NR_DEVICES; i++) {
		for (size_t j = 0; j < NR_DEVICES; j++) {
			struct device device;

			plug_device(&device, &devices[i]);
			run_device(&device, 3000);
			device.curve = &devices[j];
			device.speed = 0.5;
			run_device(&device, 12000);
			check_rate(&device, run_device(&device, 6000), 0.90);
		}
	}
}

/* A tenth of a second each: the next goes on where the last one was. */
static void jobs_hand_on_what_they_found(void **state)
{
	for (size_t i = 0; i < NR_DEVICES; i++) {
		struct device device;
		double got = 0;

		plug_device(&device, &devices[i]);
		for (unsigned job = 0; job < 30; job++) {
			got = run_device(&device, 150);
			kt_io_resume(&device.io, LEAST, MOST);
			device.units = 0;
			assert_int_equal(device.io.threads, device.io.base);
		}
		check_rate(&device, got, 0.85);
		assert_in_range(device.io.base, (devices[i].best + 1) / 2,
				devices[i].best * 2);
	}
}

/* It may have another device: what was held for long is held no longer. */
static void the_next_job_soon_tries_again(void **state)
{
	struct device device;

	plug_device(&device, &devices[1]);
	run_device(&device, 12000);
	assert_true(device.io.hold > 500);
	kt_io_resume(&device.io, LEAST, MOST);
	device.units = 0;
	device.curve = &devices[2];
	run_device(&device, 2000);
	assert_int_equal(device.io.base, 32);
}

/* What was found on a larger machine is cut to what this one allows. */
static void bounds_hold(void **state)
{
	struct device device;

	plug_device(&device, &devices[2]);
	run_device(&device, 2000);
	assert_int_equal(device.io.base, 32);
	kt_io_resume(&device.io, 2, 8);
	assert_int_equal(device.io.threads, 8);
	for (unsigned i = 0; i < 2000; i++) {
		step_device(&device);
		assert_in_range(device.io.threads, 2, 8);
	}
	kt_io_resume(&device.io, 16, 64);
	assert_int_equal(device.io.threads, 16);
	kt_io_begin(&device.io, 0, 0, 0);
	assert_int_equal(device.io.threads, 1);
}

/* What is done while other counts work is not counted. */
static void pauses_are_not_counted(void **state)
{
	struct device device;

	plug_device(&device, &devices[2]);
	for (unsigned i = 0; i < 1000; i++) {
		kt_io_pause(&device.io);
		step_device(&device);
	}
	assert_int_equal(device.io.windows, 0);
	assert_int_equal(device.io.threads, KT_IO_START);
}

/* Neither time nor work that goes back, nor none or all at once. */
static void bad_clocks_do_no_harm(void **state)
{
	uint64_t random = ktest_seed();
	struct kt_io io;

	kt_io_begin(&io, LEAST, MOST, KT_IO_START);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t now_ns = ktest_random(&random) >>
				  ktest_random_below(&random, 64);
		uint64_t units = ktest_random(&random) >>
				 ktest_random_below(&random, 64);

		assert_in_range(kt_io_step(&io, now_ns, units,
					   ktest_random(&random) >> (i % 64)),
				LEAST, MOST);
	}
}

KTEST_MAIN(KTEST(found_soon_and_held), KTEST(slow_devices_take_some_chunks),
	   KTEST(held_counts_are_seldom_left), KTEST(noise_does_little_harm),
	   KTEST(who_may_be_of_use_stays), KTEST(change_is_followed),
	   KTEST(jobs_hand_on_what_they_found),
	   KTEST(the_next_job_soon_tries_again), KTEST(bounds_hold),
	   KTEST(pauses_are_not_counted), KTEST(bad_clocks_do_no_harm))
