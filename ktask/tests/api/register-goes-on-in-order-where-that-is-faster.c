/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: a device that takes several calls at once, which then take longer than by one
 * thread, is called by one thread, in order.  One whose calls cost the same is called by
 * several.  The next registrations by a function that was found to gain nothing have no
 * trial.
 *
 * What a call costs follows from its number, whatever runs beside it.  Whether a helper
 * comes during a trial is for the machine to say: if none does, it is tried again.
 */
#include "ktest.h"

#include <pthread.h>

#include "device.h"

#define LEN (128 * MIB)
/* A trial at its longest: two calls of the caller, and four jobs of two, of which each is
 * long.  It may end before. */
#define ALONE_CALLS 2
#define TRIAL_CALLS 10
#define ATTEMPTS 50
#define BELIEVED 15 /* registrations */
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
	bool held_up; /* a call of the trial, by what ran beside it */
};

/* Attempts that nothing held up, of which one must be as it should. */
#define JUDGED 5
/* Attempts end then, if others hold all of them up. */
#define TRIED_NS 30000000000ULL
static uint64_t late_ns;

static void use_cpu(uint64_t ns)
{
	uint64_t end_ns = ktest_thread_cpu_ns() + ns;

	while (ktest_thread_cpu_ns() < end_ns)
		;
}

static int cost_and_watch(struct device *device, char *start, char *end)
{
	struct caller *caller = device->arg;
	uint64_t begin_ns = ktest_now_ns(), cost_ns, nap_us;
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
	nap_us = call < ALONE_CALLS ? 500 : 2000;
	cost_ns = call < ALONE_CALLS ? caller->alone_ns : caller->at_once_ns;
	usleep(nap_us);
	use_cpu(cost_ns);
	if (ktest_now_ns() - begin_ns > 2 * (cost_ns + nap_us * 1000))
		__atomic_store_n(&caller->held_up, true, __ATOMIC_RELAXED);
	return 0;
}

/* What is found of a function is kept: each test has its own. */
#define DEFINE_FUNCTION(name)                              \
	static int name(void *start, void *end, void *arg) \
	{                                                  \
		return device_register(start, end, arg);   \
	}

DEFINE_FUNCTION(register_absent)
DEFINE_FUNCTION(register_present)
DEFINE_FUNCTION(register_making)
DEFINE_FUNCTION(register_again)
DEFINE_FUNCTION(register_gaining)

/* Return: what was seen of the calls. */
static struct caller register_by(ktask_register_func func, uint64_t alone_ns,
				 uint64_t at_once_ns, unsigned flags)
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
	ctl.register_func = func;
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

static const struct {
	ktask_register_func func;
	unsigned flags;
} kinds[] = {
	{ register_absent, 0 },
	{ register_present, KTASK_REGISTER_PRESENT },
	{ register_making, KTASK_REGISTER_MAKES_PAGES },
};

static bool went_on_in_order(const struct caller *seen)
{
	return seen->helped_trial && !seen->helped && !seen->out_of_order;
}

/* Return: whether a helper came.  Once is enough: if a call of the caller is held up, the
 * others seem to cost no more. */
static bool found_no_gain(ktask_register_func func, unsigned flags,
			  bool *held_up)
{
	struct caller seen = { 0 };
	unsigned nr_helped = 0;

	for (int j = 0; j < ATTEMPTS && !went_on_in_order(&seen); j++) {
		seen = register_by(func, MS, 20 * MS, flags);
		nr_helped += seen.helped_trial > 0;
		*held_up |= seen.held_up;
		if (seen.held_up && ktest_now_ns() > late_ns)
			ktest_skip("other processes held trials up");
	}
	assert_true(went_on_in_order(&seen) || !nr_helped);
	return nr_helped;
}

static void calls_that_gain_nothing_are_made_in_order(void **state)
{
	bool held_up = false;

	late_ns = ktest_now_ns() + TRIED_NS;
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(kinds); i++)
		if (!found_no_gain(kinds[i].func, kinds[i].flags, &held_up))
			ktest_skip("no helper came");
}

/* Calls that gain would be seen to in a trial. */
static bool next_have_no_trial(void)
{
	for (int i = 0; i < BELIEVED; i++) {
		struct caller seen =
			register_by(register_again, MS / 10, MS / 10,
				    KTASK_REGISTER_PRESENT);

		if (seen.helped_trial || seen.helped)
			return false;
	}
	return true;
}

/* Two trials in a row must find it.  Where the helper merely left, calls go on in order
 * too, and nothing is kept: once is enough. */
static void the_next_registrations_have_no_trial(void **state)
{
	bool had_none = false;
	unsigned nr_judged = 0;

	late_ns = ktest_now_ns() + TRIED_NS;
	for (int i = 0; i < ATTEMPTS && !had_none; i++) {
		bool held_up = false;

		if (!found_no_gain(register_again, KTASK_REGISTER_PRESENT,
				   &held_up) ||
		    !found_no_gain(register_again, KTASK_REGISTER_PRESENT,
				   &held_up))
			ktest_skip("no helper came");
		had_none = next_have_no_trial();
		nr_judged += !held_up;
	}
	if (!had_none && nr_judged < JUDGED)
		ktest_skip("other processes held trials up");
	assert_true(had_none);
}

static void calls_that_cost_the_same_are_made_by_several(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(kinds); i++) {
		struct caller seen = { 0 };

		for (int j = 0; j < ATTEMPTS && !seen.helped; j++)
			seen = register_by(register_gaining, MS, MS,
					   kinds[i].flags);
		if (!seen.helped)
			ktest_skip("no helper came");
	}
}

KTEST_MAIN(KTEST(calls_that_gain_nothing_are_made_in_order),
	   KTEST(the_next_registrations_have_no_trial),
	   KTEST(calls_that_cost_the_same_are_made_by_several))
