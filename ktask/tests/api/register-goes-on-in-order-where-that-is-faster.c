/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: a device that takes several calls at once, which then take longer than by one
 * thread, is called by one thread, in order.  One whose calls cost the same is called by
 * several.
 *
 * What a call costs follows from its number, whatever runs beside it.  Whether a helper
 * comes during a trial is for the machine to say: if none does, it is tried again.
 */
#include "ktest.h"

#include <pthread.h>

#include "device.h"

#define LEN (128 * MIB)
/* A trial: two calls of the caller, and two by two threads, of which each is long. */
#define ALONE_CALLS 2
#define TRIAL_CALLS 4
#define ATTEMPTS 50
#define MS 1000000ull

struct caller {
	pthread_t thread;
	uint64_t alone_ns; /* what a call of the caller in the trial costs */
	uint64_t at_once_ns; /* what others in it cost */
	unsigned calls;
	unsigned helped_trial; /* calls of helpers in the trial */
	unsigned helped; /* and behind it */
	char *last_end; /* of the caller's, behind it */
	bool out_of_order;
};

static void use_cpu(uint64_t ns)
{
	uint64_t end_ns = ktest_thread_cpu_ns() + ns;

	while (ktest_thread_cpu_ns() < end_ns)
		;
}

static int cost_and_watch(struct device *device, char *start, char *end)
{
	struct caller *caller = device->arg;
	bool helps = !pthread_equal(pthread_self(), caller->thread);
	unsigned call;

	pthread_mutex_lock(&device->lock);
	call = caller->calls++;
	if (call >= ALONE_CALLS && call < TRIAL_CALLS)
		caller->helped_trial += helps;
	if (call >= TRIAL_CALLS) {
		caller->helped += helps;
		caller->out_of_order |= start < caller->last_end;
		caller->last_end = end;
	}
	pthread_mutex_unlock(&device->lock);
	if (call >= TRIAL_CALLS) {
		usleep(500);
		return 0;
	}
	/* Long enough for a helper to come. */
	usleep(call < ALONE_CALLS ? 500 : 2000);
	use_cpu(call < ALONE_CALLS ? caller->alone_ns : caller->at_once_ns);
	return 0;
}

/* Return: what was seen of the calls. */
static struct caller register_all(uint64_t alone_ns, uint64_t at_once_ns,
				  unsigned flags)
{
	struct caller caller = { .thread = pthread_self(),
				 .alone_ns = alone_ns,
				 .at_once_ns = at_once_ns };
	struct ktask_registration *registration;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	static struct device device;
	struct ktask_register_ctl ctl;
	char *at = map_private(LEN);

	device_init(&device);
	device.any_order = true;
	device.before = cost_and_watch;
	device.arg = &caller;
	ctl = device_ctl(&device, KTASK_REGISTER_PARALLEL | flags);
	ctl.unit_bytes = 2 * MIB;
	ctl.max_piece_bytes = 2 * MIB;
	opts.max_threads = 2;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, &opts),
			 0);
	assert_int_equal(device_bytes(&device), LEN);
	assert_int_equal(caller.calls, LEN / (2 * MIB));
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(device.nr, 0);
	assert_int_equal(device.wrong, 0);
	munmap(at, LEN);
	return caller;
}

static const unsigned kinds[] = { 0, KTASK_REGISTER_PRESENT,
				  KTASK_REGISTER_MAKES_PAGES };

static bool went_on_in_order(const struct caller *seen)
{
	return seen->helped_trial && !seen->helped && !seen->out_of_order;
}

/* Once is enough: if a call of the caller is held up, the others seem to cost no more. */
static void calls_that_gain_nothing_are_made_in_order(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(kinds); i++) {
		struct caller seen = { 0 };
		unsigned nr_helped = 0;

		for (int j = 0; j < ATTEMPTS && !went_on_in_order(&seen); j++) {
			seen = register_all(MS, 20 * MS, kinds[i]);
			nr_helped += seen.helped_trial > 0;
		}
		if (!nr_helped)
			ktest_skip("no helper came");
		assert_true(went_on_in_order(&seen));
	}
}

static void calls_that_cost_the_same_are_made_by_several(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(kinds); i++) {
		struct caller seen = { 0 };

		for (int j = 0; j < ATTEMPTS && !seen.helped; j++)
			seen = register_all(MS, MS, kinds[i]);
		if (!seen.helped)
			ktest_skip("no helper came");
	}
}

KTEST_MAIN(KTEST(calls_that_gain_nothing_are_made_in_order),
	   KTEST(calls_that_cost_the_same_are_made_by_several))
