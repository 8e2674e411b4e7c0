/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * However many CPUs a machine has and however many requests its device rewards,
 * a job gets about as many compensating helpers as pay; none where others use the CPUs, unless
 * it uses less than one; and never more than allowed.
 *
 * Simulated: a device whose rate depends on the threads in chunks, a sample each
 * millisecond.
 */
#include "ktest.h"

#include "user/blocking/manager_count.h"

#define MS 1000000
#define CHUNK 1000
#define MAX 64

struct machine {
	struct manager_count count;
	struct manager_sample sample;
	unsigned best; /* threads that the device rewards */
	double units, all; /* of this job, and of all */
	unsigned helpers;
	unsigned running; /* threads of the job that a sample sees, */
	bool exactly; /* and not just any number up to that */
	unsigned others; /* that run and are not of the job */
};

static void set_up(struct machine *machine, unsigned cpus, unsigned best)
{
	*machine = (struct machine){ .best = best };
	machine->sample.cpus = cpus;
	machine->sample.threads = cpus;
	machine->sample.max = MAX;
	machine->sample.chunk = CHUNK;
	machine->sample.now_ns = MS;
	kt_io_begin(&machine->count.io, cpus, cpus + MAX,
		    KT_MAX(KT_IO_START, 2 * cpus));
	manager_count_begin(&machine->count);
}

static unsigned in_chunks(const struct machine *machine)
{
	return machine->sample.threads + machine->helpers;
}

/* Chunks a millisecond: up to as many as it rewards each brings one more. */
static double compute_rate(const struct machine *machine, unsigned threads)
{
	return KT_MIN(threads, machine->best);
}

/* Of threads that wait for a device only a few run at a sample. */
static void take_sample(struct machine *machine)
{
	struct manager_sample *sample = &machine->sample;
	unsigned n = machine->running;

	if (!machine->exactly)
		n = (unsigned)(sample->now_ns / MS) % (n + 1);

	machine->units += CHUNK * compute_rate(machine, in_chunks(machine));
	machine->all += compute_rate(machine, in_chunks(machine));
	sample->now_ns += MS;
	sample->units = (uint64_t)machine->units;
	sample->seen.working = in_chunks(machine);
	sample->seen.running = KT_MIN(n, sample->seen.working);
	sample->runnable = sample->seen.running + 1 + machine->others;
	machine->helpers = manager_count_helpers(&machine->count, sample);
	assert_in_range(machine->helpers, 0, sample->max);
}

static void run_machine(struct machine *machine, unsigned ms)
{
	for (unsigned i = 0; i < ms; i++)
		take_sample(machine);
}

static const unsigned cpus[] = { 2, 4, 8, 16, 64, 256 };
static const unsigned rewarded[] = { 1, 2, 3, 4, 8, 16, 32, 64 };

/* From the first sample after which all were blocked there is one for each. */
static void jobs_begin_with_compensating_helpers(void **state)
{
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(cpus); i++) {
		struct machine machine;

		set_up(&machine, cpus[i], 16);
		take_sample(&machine);
		take_sample(&machine);
		assert_int_equal(machine.helpers, KT_MIN(cpus[i], MAX));
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
			run_machine(&machine, 4000);
			assert_in_range(machine.count.io.base, least,
					2 * least - 1);
			machine.all = 0;
			run_machine(&machine, 2000);
			assert_true(machine.all >= 0.95 * 2000 * machine.best);
		}
	}
}

/* The number sought may be the target: without a helper the search goes on. */
static void none_is_a_number_too(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 4);
	run_machine(&machine, 4000);
	assert_int_equal(machine.count.io.base, 4);
	machine.best = 16;
	run_machine(&machine, 20000);
	assert_int_equal(machine.count.io.base, 16);
}

/* Other jobs came: the target is less than it was at the beginning. */
static void a_lower_target_is_searched_too(void **state)
{
	struct machine machine;

	set_up(&machine, 64, 4);
	machine.sample.threads = 13;
	run_machine(&machine, 8000);
	assert_int_equal(machine.count.io.base, 13);
	/* A trial may be under way. */
	assert_in_range(machine.helpers, 0, 13);
	machine.best = 32;
	run_machine(&machine, 20000);
	assert_in_range(machine.count.io.base, 32, 63);
	machine.sample.threads = 64;
	run_machine(&machine, 100);
	assert_in_range(machine.count.io.base, 64, 128);
	machine.sample.threads = 1;
	machine.best = 2;
	machine.running = 0;
	run_machine(&machine, 20000);
	assert_in_range(machine.count.io.base, 2, 3);
}

static void client_and_caller_set_bounds(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 64);
	machine.sample.max = 3;
	run_machine(&machine, 1000);
	assert_int_equal(machine.helpers, 3);
	machine.sample.has_one_cpu = true;
	machine.sample.extra = 4;
	run_machine(&machine, 1);
	assert_int_equal(machine.helpers, 0);
	machine.sample.has_one_cpu = false;
	machine.sample.extra = 0;
	run_machine(&machine, 1);
	assert_int_equal(machine.helpers, 3);
}

/* Other work on all CPUs: a job that would use more than one leaves them. */
static void overloaded_machines_are_left_alone(void **state)
{
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(cpus); i++) {
		unsigned windows;
		struct machine machine;

		set_up(&machine, cpus[i], 1000);
		machine.running = cpus[i] + 1;
		run_machine(&machine, 1000);
		assert_true(machine.helpers > 0);
		machine.others = cpus[i];
		run_machine(&machine, 100);
		assert_int_equal(machine.helpers, 0);
		/* A number that cannot be had is not measured. */
		windows = machine.count.io.windows;
		run_machine(&machine, 1000);
		assert_int_equal(machine.helpers, 0);
		assert_int_equal(machine.count.io.windows, windows);
		machine.others = 0;
		run_machine(&machine, 100);
		assert_true(machine.helpers > 0);
	}
}

/* One that uses less than a CPU with all its helpers disturbs nobody. */
static void little_ones_have_workers_in_an_overload(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	machine.others = 8;
	run_machine(&machine, 1000);
	assert_true(machine.helpers >= 4);
	/* Not where they could not be lowered. */
	machine.sample.idle_only = true;
	run_machine(&machine, 100);
	assert_int_equal(machine.helpers, 0);
}

/* In an overload, a job that uses so many tenths of a CPU without and with helpers:
 * once it was seen for a while it has some, or none. */
static void has_helpers(unsigned without, unsigned with, bool expected)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	machine.others = 8;
	machine.exactly = true;
	for (unsigned i = 0; i < 2000; i++) {
		unsigned tenths = machine.helpers ? with : without;

		machine.running = (i + 1) * tenths / 10 - i * tenths / 10;
		take_sample(&machine);
		if (i >= 100)
			assert_int_equal(machine.helpers != 0, expected);
	}
}

static void jobs_of_about_a_cpu_make_up_their_mind(void **state)
{
	has_helpers(3, 8, true);
	has_helpers(7, 11, false);
}

/* Threads that run are not replaced, and their rate says nothing of helpers. */
static void threads_that_compute_have_none(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	machine.sample.chunk = 1;
	machine.running = 4;
	machine.exactly = true;
	/* Samples may be rare. */
	for (unsigned i = 0; i < 1000; i++) {
		machine.sample.now_ns += 20 * MS;
		take_sample(&machine);
	}
	assert_int_equal(machine.helpers, 0);
	assert_int_equal(machine.count.io.windows, 0);
}

/* More than pay, as long as they are stalled and blocked. */
static void stalled_threads_do_not_count(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 0);
	run_machine(&machine, 10);
	assert_int_equal(machine.helpers, 4);
	machine.sample.extra = 8;
	take_sample(&machine);
	assert_int_equal(machine.helpers, 12);
	machine.sample.extra = 1000;
	run_machine(&machine, 10);
	assert_int_equal(machine.helpers, MAX);
	machine.sample.extra = 0;
	take_sample(&machine);
	assert_int_equal(machine.helpers, 4);
}

/* A rate is that of one number of threads. */
static void windows_end_when_others_stall(void **state)
{
	struct machine machine;

	set_up(&machine, 4, 16);
	for (unsigned i = 0; i < 1000; i++) {
		machine.sample.extra = 1 + i % 2;
		take_sample(&machine);
	}
	assert_int_equal(machine.count.io.windows, 0);
	run_machine(&machine, 1000);
	assert_true(machine.count.io.windows > 0);
}

KTEST_MAIN(KTEST(jobs_begin_with_compensating_helpers),
	   KTEST(any_device_on_any_machine), KTEST(none_is_a_number_too),
	   KTEST(a_lower_target_is_searched_too),
	   KTEST(client_and_caller_set_bounds),
	   KTEST(overloaded_machines_are_left_alone),
	   KTEST(little_ones_have_workers_in_an_overload),
	   KTEST(jobs_of_about_a_cpu_make_up_their_mind),
	   KTEST(threads_that_compute_have_none),
	   KTEST(stalled_threads_do_not_count),
	   KTEST(windows_end_when_others_stall))
