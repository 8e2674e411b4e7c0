/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * However many CPUs a machine has and however many requests its device rewards,
 * a job gets about as many spares as pay; none where others use the CPUs, unless
 * it uses less than one; and never more than allowed.
 *
 * Simulated: a device whose rate depends on the threads in chunks, a look each
 * millisecond.
 */
#include "ktest.h"

#include "lib/spares_count.h"

#define MS 1000000
#define CHUNK 1000
#define MAX 64

struct machine {
	struct spares_count count;
	struct spares_look look;
	unsigned best; /* threads that the device rewards */
	double units, all; /* of this job, and of all */
	unsigned spares;
	unsigned running; /* threads of the job that a look sees, */
	bool exactly; /* and not just any number up to that */
	unsigned others; /* that run and are not of the job */
};

static void set_up(struct machine *machine, unsigned cpus, unsigned best)
{
	*machine = (struct machine){ .best = best };
	machine->look.cpus = cpus;
	machine->look.threads = cpus;
	machine->look.max = MAX;
	machine->look.chunk = CHUNK;
	machine->look.now_ns = MS;
	kt_depth_begin(&machine->count.depth, cpus, cpus + MAX,
		       KT_MAX(KT_DEPTH_START, 2 * cpus));
	spares_count_begin(&machine->count);
}

static unsigned in_chunks(const struct machine *machine)
{
	return machine->look.threads + machine->spares;
}

/* Chunks a millisecond: up to as many as it rewards each brings one more. */
static double rate(const struct machine *machine, unsigned threads)
{
	return KT_MIN(threads, machine->best);
}

/* Of threads that wait for a device only a few run at a look. */
static void look(struct machine *machine)
{
	struct spares_look *look = &machine->look;
	unsigned n = machine->running;

	if (!machine->exactly)
		n = (unsigned)(look->now_ns / MS) % (n + 1);

	machine->units += CHUNK * rate(machine, in_chunks(machine));
	machine->all += rate(machine, in_chunks(machine));
	look->now_ns += MS;
	look->units = (uint64_t)machine->units;
	look->sight.working = in_chunks(machine);
	look->sight.running = KT_MIN(n, look->sight.working);
	look->runnable = look->sight.running + 1 + machine->others;
	machine->spares = spares_count(&machine->count, look);
	assert_in_range(machine->spares, 0, look->max);
}

static void go(struct machine *machine, unsigned ms)
{
	for (unsigned i = 0; i < ms; i++)
		look(machine);
}

static const unsigned cpus[] = { 2, 4, 8, 16, 64, 256 };
static const unsigned rewarded[] = { 1, 2, 3, 4, 8, 16, 32, 64 };

/* From the first look after which all were blocked there is one for each. */
static void jobs_begin_with_spares(void **state)
{
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(cpus); i++) {
		struct machine machine;

		set_up(&machine, cpus[i], 16);
		look(&machine);
		look(&machine);
		assert_int_equal(machine.spares, KT_MIN(cpus[i], MAX));
	}
}

static void any_device_on_any_machine(void **state)
{
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(cpus); i++) {
		for (size_t j = 0; j < KTEST_ARRAY_SIZE(rewarded); j++) {
			unsigned least = KT_MAX(cpus[i], rewarded[j]);
			struct machine machine;

			set_up(&machine, cpus[i], rewarded[j]);
			machine.running = cpus[i] / 2;
			go(&machine, 4000);
			assert_in_range(machine.count.depth.base, least,
					2 * least - 1);
			machine.all = 0;
			go(&machine, 2000);
			assert_true(machine.all >= 0.95 * 2000 * machine.best);
		}
	}
}

/* The number sought may be that of the places: without a spare it goes on. */
static void none_is_a_number_too(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 4);
	go(&machine, 4000);
	assert_int_equal(machine.count.depth.base, 4);
	machine.best = 16;
	go(&machine, 20000);
	assert_int_equal(machine.count.depth.base, 16);
}

/* Other jobs have places too: this one has fewer than it began with. */
static void shared_places_are_sought_among(void **state)
{
	struct machine machine;

	set_up(&machine, 64, 4);
	machine.look.threads = 13;
	go(&machine, 8000);
	assert_int_equal(machine.count.depth.base, 13);
	/* A trial may be under way. */
	assert_in_range(machine.spares, 0, 13);
	machine.best = 32;
	go(&machine, 20000);
	assert_in_range(machine.count.depth.base, 32, 63);
	machine.look.threads = 64;
	go(&machine, 100);
	assert_in_range(machine.count.depth.base, 64, 128);
	machine.look.threads = 1;
	machine.best = 2;
	machine.running = 0;
	go(&machine, 20000);
	assert_in_range(machine.count.depth.base, 2, 3);
}

static void client_and_caller_set_bounds(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 64);
	machine.look.max = 3;
	go(&machine, 1000);
	assert_int_equal(machine.spares, 3);
	machine.look.alone = true;
	machine.look.extra = 4;
	go(&machine, 1);
	assert_int_equal(machine.spares, 0);
	machine.look.alone = false;
	machine.look.extra = 0;
	go(&machine, 1);
	assert_int_equal(machine.spares, 3);
}

/* Other work on all CPUs: a job that would use more than one leaves them. */
static void crowded_machines_are_left_alone(void **state)
{
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(cpus); i++) {
		unsigned windows;
		struct machine machine;

		set_up(&machine, cpus[i], 1000);
		machine.running = cpus[i] + 1;
		go(&machine, 1000);
		assert_true(machine.spares > 0);
		machine.others = cpus[i];
		go(&machine, 100);
		assert_int_equal(machine.spares, 0);
		/* Nothing is learnt of a number that is not to be had. */
		windows = machine.count.depth.windows;
		go(&machine, 1000);
		assert_int_equal(machine.spares, 0);
		assert_int_equal(machine.count.depth.windows, windows);
		machine.others = 0;
		go(&machine, 100);
		assert_true(machine.spares > 0);
	}
}

/* One that uses less than a CPU with all its spares is in nobody's way. */
static void little_ones_have_spares_in_a_crowd(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	machine.others = 8;
	go(&machine, 1000);
	assert_true(machine.spares >= 4);
	/* Not where they could not be lowered. */
	machine.look.idle_only = true;
	go(&machine, 100);
	assert_int_equal(machine.spares, 0);
}

/* In a crowd, a job that uses so many tenths of a CPU without and with spares:
 * once it was seen for a while it has some, or none. */
static void has_spares(unsigned without, unsigned with, bool expected)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	machine.others = 8;
	machine.exactly = true;
	for (unsigned i = 0; i < 2000; i++) {
		unsigned tenths = machine.spares ? with : without;

		machine.running = (i + 1) * tenths / 10 - i * tenths / 10;
		look(&machine);
		if (i >= 100)
			assert_int_equal(machine.spares != 0, expected);
	}
}

static void jobs_of_about_a_cpu_make_up_their_mind(void **state)
{
	has_spares(3, 8, true);
	has_spares(7, 11, false);
}

/* Threads that run are not replaced, and their rate says nothing of spares. */
static void threads_that_compute_have_none(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	machine.look.chunk = 1;
	machine.running = 4;
	machine.exactly = true;
	/* Looks may be rare. */
	for (unsigned i = 0; i < 1000; i++) {
		machine.look.now_ns += 20 * MS;
		look(&machine);
	}
	assert_int_equal(machine.spares, 0);
	assert_int_equal(machine.count.depth.windows, 0);
}

/* More than pay, as long as they stand and are blocked. */
static void who_stands_does_not_count(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 0);
	go(&machine, 10);
	assert_int_equal(machine.spares, 4);
	machine.look.extra = 8;
	look(&machine);
	assert_int_equal(machine.spares, 12);
	machine.look.extra = 1000;
	go(&machine, 10);
	assert_int_equal(machine.spares, MAX);
	machine.look.extra = 0;
	look(&machine);
	assert_int_equal(machine.spares, 4);
}

/* A rate is that of one number of threads. */
static void windows_end_when_others_stand(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	for (unsigned i = 0; i < 1000; i++) {
		machine.look.extra = 1 + i % 2;
		look(&machine);
	}
	assert_int_equal(machine.count.depth.windows, 0);
	go(&machine, 1000);
	assert_true(machine.count.depth.windows > 0);
}

KTEST_MAIN(KTEST(jobs_begin_with_spares), KTEST(any_device_on_any_machine),
	   KTEST(none_is_a_number_too), KTEST(shared_places_are_sought_among),
	   KTEST(client_and_caller_set_bounds),
	   KTEST(crowded_machines_are_left_alone),
	   KTEST(little_ones_have_spares_in_a_crowd),
	   KTEST(jobs_of_about_a_cpu_make_up_their_mind),
	   KTEST(threads_that_compute_have_none),
	   KTEST(who_stands_does_not_count),
	   KTEST(windows_end_when_others_stand))
