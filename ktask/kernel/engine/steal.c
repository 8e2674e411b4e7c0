// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steal: a virtual machine whose host lacks CPUs gains nothing from helpers.
 *
 * A helper is woken on an idle CPU of the guest.  If that CPU shares a CPU of the host
 * with the caller's, the two run in turns.  Nothing is gained.  If one of them is stopped
 * while it holds a lock, the other spins for that lock and loses its whole turn of the
 * host's scheduler.  The end of a process took up to 20 times as long.
 *
 * A caller suspects this when something other than the guest's scheduler stopped it:
 *
 * - KVM and Xen have a clock for stolen time.  Where it advances, it is believed.  There
 *   vcpu_is_preempted() also shows that a helper is stopped while its caller runs.  A
 *   clock that has never advanced counts as none.
 * - Without such a clock, the caller suspects a chunk that took much longer than the same
 *   work did before.  But that chunk may just have been expensive.
 *
 * A suspicion proves nothing: other guests also take time from CPUs on which helpers pay.
 * So helpers leave and come back, and the rates decide:
 *
 *	with helpers -> alone -> with helpers
 *
 * Helpers pay if the rate with them is at least 9/8 of the caller's own.  They do not pay
 * if both comparisons say so, that before and that after.  Two CPUs that share one of the
 * host do no more than one of them would, and much less if they spin.  So an eighth more
 * may be asked for, although a period of few chunks is that inexact.
 * Both comparisons are needed because the cost of a unit changes: units of munmap() are
 * addresses, and cost a hundred times as much where memory is dense.  If the cost falls,
 * helpers that pay seem useless in the first comparison; if it rises, in the second.
 *
 * A cost that falls and then rises again deceives both.  So at first only that job has no
 * helpers for a second.  The next job begins alone: alone -> with helpers.  If helpers do
 * not pay there either, the host lacks CPUs, and no job has helpers for a second.  That
 * time doubles whenever the first job after it finds the same.  The first job in which
 * helpers pay ends this.
 *
 * What this costs: if the host lacks CPUs, three periods with helpers, in two jobs, and
 * one more after each time without helpers.  If it does not, one period without helpers
 * for each suspicion.
 *
 * Behaves badly without a clock for stolen time if chunks are as long as several turns of
 * the host's scheduler: then all take twice as long, and none stands out.  Jobs of a few
 * milliseconds end before anything is decided.  They pay for helpers that do not run,
 * until a longer job has decided.
 *
 * Locking: there is no lock.  A watch is its caller's.  Any thread reads and writes
 * host_cpus: kt_load() and kt_store(); of two that write at once one is lost.
 */
#include "core/rate.h"
#include "kernel/engine/steal.h"

#define COST_SHIFT 10
/* About the shortest turn of a host's scheduler. */
#define STOPPED_NS 1500000
/* Several turns, so that a rate means something. */
#define PERIOD_NS 6000000
/* Helpers pay if the rate with them is at least 9/8 of the caller's own. */
#define PAYS_PART 9
#define PAYS_OF 8
/* After this many comparisons in which helpers did not pay, no job has helpers.  Two of
 * them are made in one job, the others in jobs that began alone. */
#define DOUBTS_MAX 3
#define DOUBTS_OF_ONE 2
/* For this long; it doubles at most this many times. */
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
	uint64_t trust_ns; /* how long the last such time was */
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

/* Helpers did not pay, @doubts times in a row. */
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

/* Helpers did pay.  Such chunks are expensive now and then, so do not ask each time. */
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
	/* This does not overflow: the cost is at most that of this chunk. */
	usual_ns = units * watch->cost >> COST_SHIFT;
	return ns / 2 >= usual_ns && ns - usual_ns >= STOPPED_NS;
}

/* The clock belongs to a CPU, and the caller may have migrated. */
static bool was_stolen_from(const struct steal_watch *watch,
			    const struct steal_sample *sample)
{
	return sample->cpu == watch->cpu &&
	       sample->stolen_ns >= watch->stolen_ns + STOPPED_NS;
}

/* Was the caller stopped in its last chunk by something other than the guest's scheduler?
 * Or is a helper stopped now? */
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
		/* Measure from the end of a helper's chunk on.  At the end of the period a
		 * chunk may be half done; so one may be left out at its beginning. */
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
