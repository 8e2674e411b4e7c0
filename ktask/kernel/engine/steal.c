// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steal: a virtual machine whose host lacks CPUs gains nothing from helpers.
 *
 * A CPU of the guest may idle, and a helper is woken on it; but if it shares a CPU of
 * the host with the caller's, the two run in turns.  Nothing is gained, and each loses
 * a turn of the host's scheduler whenever it spins for a lock that the other one was
 * stopped with.  The end of a process took up to 20 times as long so.
 *
 * A caller suspects this when it was stopped, and not by the guest's scheduler:
 *
 * - Where the hypervisor has a clock for stolen time, as KVM and Xen have, that clock
 *   tells.  Besides vcpu_is_preempted() tells that a helper is stopped while its caller
 *   runs.  A clock that has never advanced is taken for none.
 * - Elsewhere a chunk tells that took much longer than the same work did before.  It may
 *   have been expensive.
 *
 * Both is reason to ask and no more: other guests take time from CPUs on which helpers
 * pay.  So helpers leave, come back, and rates decide:
 *
 *	with helpers -> alone -> with helpers
 *
 * Helpers do not pay if their rate is less than 9/8 of the caller's own, before and after.
 * Two CPUs that share one of the host do as much as one at most, and much less where they
 * spin, so that nothing is lost if a period of few chunks is inexact by an eighth.  Both
 * comparisons are made because a unit need not cost the same all the time: units of
 * munmap() are addresses, and where memory is dense they cost a hundred times as much.
 * Helpers that pay seem not to, before, if the cost falls meanwhile, and after if it rises.
 *
 * Cost that falls and rises again deceives both.  So that job alone has no helpers for a
 * second.  The next one begins alone: alone -> with helpers.  Only if these do not pay
 * either the host lacks CPUs, and no job has helpers for a second; for twice as long each
 * time that the first job after it finds the same.  The first that finds helpers to pay
 * ends the doubt.
 *
 * This costs, where the host lacks CPUs, three periods with helpers, in two jobs, and
 * another one after each time without; where it does not, one period without helpers for
 * each time that a caller is suspected.
 *
 * Behaves badly, without such a clock, where chunks are as long as several turns of the
 * host's scheduler: each takes twice as long then, and none is unusual.  Jobs of a few
 * milliseconds end before anything is decided, and pay for helpers that do not run until
 * a longer one has.
 *
 * Locking: there is no lock.  A watch is its caller's.  Any thread reads and writes
 * host_cpus: kt_load() and kt_store(); of two that write at once one is lost.
 */
#include "core/rate.h"
#include "kernel/engine/steal.h"

#define COST_SHIFT 10
/* The shortest turns of a host's scheduler are about as long. */
#define STOPPED_NS 1500000
/* Several turns, so that a rate means something. */
#define PERIOD_NS 6000000
/* Helpers pay if the rate with them is at least 9/8 of the caller's own. */
#define PAYS_PART 9
#define PAYS_OF 8
/* After so many comparisons no job has helpers: two in one job, the others in jobs that
 * began alone. */
#define DOUBTS_MAX 3
#define DOUBTS_OF_ONE 2
/* For how long, doubled so many times at most. */
#define FORBID_NS 1000000000ull
#define FORBID_DOUBLED 6
/* How long no job is suspected after helpers did pay. */
#define TRUST_FIRST_NS 64000000ull
#define TRUST_LAST_NS 4096000000ull

static struct {
	uint64_t lacking_until_ns;
	unsigned int doubts; /* comparisons in a row: helpers did not pay */
	uint64_t doubted_until_ns; /* then these are forgotten */
	uint64_t trusted_until_ns;
	uint64_t trust_ns; /* how long that was at last */
} host_cpus;

static bool host_lacks_cpus(uint64_t now_ns)
{
	return now_ns < kt_load(&host_cpus.lacking_until_ns);
}

static unsigned int doubts_of_host(uint64_t now_ns)
{
	return now_ns < kt_load(&host_cpus.doubted_until_ns)
		       ? kt_load(&host_cpus.doubts)
		       : 0;
}

/* Helpers did not pay, for as many times. */
static void doubt_host(uint64_t now_ns, unsigned int doubts)
{
	uint64_t length_ns = FORBID_NS;

	doubts = KT_MIN(doubts, DOUBTS_MAX + FORBID_DOUBLED);
	if (doubts >= DOUBTS_MAX) {
		length_ns <<= doubts - DOUBTS_MAX;
		kt_store(&host_cpus.lacking_until_ns, now_ns + length_ns);
	}
	kt_store(&host_cpus.doubts, doubts);
	kt_store(&host_cpus.doubted_until_ns, now_ns + 9 * length_ns);
	kt_store(&host_cpus.trust_ns, 0);
}

/* They did.  Chunks of this kind are expensive now and then: do not ask each time. */
static void trust_host(uint64_t now_ns)
{
	uint64_t trust_ns = kt_load(&host_cpus.trust_ns) * 4;

	trust_ns = KT_MIN(KT_MAX(trust_ns, TRUST_FIRST_NS), TRUST_LAST_NS);
	kt_store(&host_cpus.trust_ns, trust_ns);
	kt_store(&host_cpus.trusted_until_ns, now_ns + trust_ns);
	kt_store(&host_cpus.doubts, 0);
}

static void begin_phase(struct steal_watch *watch, enum steal_phase phase,
			const struct steal_sample *sample)
{
	watch->phase = phase;
	watch->suspected = false;
	watch->from_ns = sample->now_ns;
	watch->from_units = sample->units;
	watch->others_units = sample->units - sample->own_units;
}

/* With helpers, unless they are in doubt. */
static void begin_watch(struct steal_watch *watch,
			const struct steal_sample *sample)
{
	watch->helped_rate = 0;
	if (host_lacks_cpus(sample->now_ns))
		watch->phase = STEAL_FORBIDDEN;
	else
		begin_phase(watch,
			    doubts_of_host(sample->now_ns) ? STEAL_ALONE
							   : STEAL_HELPED,
			    sample);
}

void steal_begin(struct steal_watch *watch, uint64_t now_ns)
{
	const struct steal_sample none = { .now_ns = now_ns };

	begin_watch(watch, &none);
	watch->forbidden_until_ns = 0;
	watch->last_ns = now_ns;
	watch->last_units = 0;
	watch->switches = 0;
	watch->cost = 0;
	watch->cpu = UINT32_MAX;
}

/* Did the chunk take much longer than the same work did before? */
static bool was_long(struct steal_watch *watch, uint64_t units, uint64_t ns)
{
	uint64_t cost = (KT_MIN(ns, UINT64_MAX >> COST_SHIFT) << COST_SHIFT) /
			KT_MAX(units, 1);
	uint64_t usual_ns;

	if (!watch->cost || cost <= watch->cost) {
		watch->cost = KT_MAX(cost, 1);
		return false;
	}
	/* No more than the time that was just divided by it. */
	usual_ns = units * watch->cost >> COST_SHIFT;
	return ns / 2 >= usual_ns && ns - usual_ns >= STOPPED_NS;
}

/* The clock is one of a CPU, and a caller may migrate. */
static bool was_stolen_from(const struct steal_watch *watch,
			    const struct steal_sample *sample)
{
	return sample->cpu == watch->cpu &&
	       sample->stolen_ns >= watch->stolen_ns + STOPPED_NS;
}

/* Was the caller stopped in its last chunk, and not by the guest's scheduler; or is a
 * helper? */
static bool was_stopped(struct steal_watch *watch,
			const struct steal_sample *sample)
{
	uint64_t ns = sample->now_ns > watch->last_ns
			      ? sample->now_ns - watch->last_ns
			      : 0;
	bool by_chunk =
		was_long(watch, sample->own_units - watch->last_units, ns);
	bool stopped =
		(sample->tells ? was_stolen_from(watch, sample) : by_chunk) &&
		sample->switches == watch->switches;

	watch->last_ns = sample->now_ns;
	watch->last_units = sample->own_units;
	watch->switches = sample->switches;
	watch->cpu = sample->cpu;
	watch->stolen_ns = sample->stolen_ns;
	return stopped || sample->helper_stopped;
}

static uint64_t phase_ns(const struct steal_watch *watch,
			 const struct steal_sample *sample)
{
	return sample->now_ns > watch->from_ns ? sample->now_ns - watch->from_ns
					       : 0;
}

static uint64_t phase_rate(const struct steal_watch *watch,
			   const struct steal_sample *sample)
{
	uint64_t units = sample->units > watch->from_units
				 ? sample->units - watch->from_units
				 : 0;

	return kt_rate(units, KT_MAX(phase_ns(watch, sample), 1));
}

static bool helpers_pay(uint64_t helped_rate, uint64_t alone_rate)
{
	return helped_rate / PAYS_PART >= alone_rate / PAYS_OF;
}

static void watch_helped(struct steal_watch *watch,
			 const struct steal_sample *sample, bool stopped)
{
	if (host_lacks_cpus(sample->now_ns)) {
		watch->phase = STEAL_FORBIDDEN;
		return;
	}
	watch->suspected |=
		stopped &&
		sample->now_ns >= kt_load(&host_cpus.trusted_until_ns);
	if (!sample->helped) {
		begin_phase(watch, STEAL_HELPED, sample);
	} else if (watch->suspected && phase_ns(watch, sample) >= PERIOD_NS) {
		watch->helped_rate = phase_rate(watch, sample);
		watch->phase = STEAL_LEAVING;
	}
}

static void end_alone(struct steal_watch *watch,
		      const struct steal_sample *sample)
{
	unsigned int doubts = doubts_of_host(sample->now_ns);

	watch->alone_rate = phase_rate(watch, sample);
	if (!watch->helped_rate) {
		begin_phase(watch, STEAL_RETURNING, sample);
	} else if (helpers_pay(watch->helped_rate, watch->alone_rate)) {
		trust_host(sample->now_ns);
		begin_phase(watch, STEAL_HELPED, sample);
	} else {
		doubt_host(sample->now_ns, KT_MAX(doubts, 1));
		begin_phase(watch, STEAL_RETURNING, sample);
	}
}

/* Return: true if helpers did not pay. */
static bool end_trial(struct steal_watch *watch,
		      const struct steal_sample *sample)
{
	unsigned int doubts = doubts_of_host(sample->now_ns);

	if (helpers_pay(phase_rate(watch, sample), watch->alone_rate)) {
		trust_host(sample->now_ns);
		begin_phase(watch, STEAL_HELPED, sample);
		return false;
	}
	doubt_host(sample->now_ns, watch->helped_rate
					   ? KT_MAX(doubts, DOUBTS_OF_ONE)
					   : doubts + 1);
	watch->forbidden_until_ns = sample->now_ns + FORBID_NS;
	watch->phase = STEAL_FORBIDDEN;
	return true;
}

bool steal_step(struct steal_watch *watch, const struct steal_sample *sample,
		bool *found)
{
	bool stopped = was_stopped(watch, sample);

	*found = false;
	switch (watch->phase) {
	case STEAL_HELPED:
		watch_helped(watch, sample, stopped);
		break;
	case STEAL_LEAVING:
		if (!sample->helped)
			begin_phase(watch, STEAL_ALONE, sample);
		break;
	case STEAL_ALONE:
		if (phase_ns(watch, sample) >= PERIOD_NS)
			end_alone(watch, sample);
		break;
	case STEAL_RETURNING:
		/* From the end of a helper's chunk: one that is half done may be at the
		 * end, too. */
		if (sample->units - sample->own_units != watch->others_units)
			begin_phase(watch, STEAL_TRIED, sample);
		break;
	case STEAL_TRIED:
		if (phase_ns(watch, sample) >= PERIOD_NS)
			*found = end_trial(watch, sample);
		break;
	case STEAL_FORBIDDEN:
		if (sample->now_ns >= watch->forbidden_until_ns &&
		    !host_lacks_cpus(sample->now_ns))
			begin_watch(watch, sample);
		break;
	}
	return steal_allows(watch);
}
