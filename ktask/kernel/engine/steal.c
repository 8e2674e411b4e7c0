// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steal: a virtual machine whose host lacks CPUs gains nothing from helpers.
 *
 * A CPU of the guest may idle, and a helper is woken on it; but if it shares a CPU of
 * the host with the caller's, the two run in turns.  Nothing is gained, and each loses
 * a turn of the host's scheduler whenever it spins for a lock that the other one was
 * stopped with.  The end of a process took up to 20 times as long so.
 *
 * No clock of the guest tells this where the hypervisor has none for stolen time.  But
 * a caller that is stopped sees a chunk that took much longer than the same work did
 * before, although the guest's scheduler took it off its CPU at no time.  This alone may
 * be a chunk that was expensive.  So helpers leave, the caller works alone for as long
 * as it was watched with them, and the two rates decide.  If helpers did not pay, no
 * job has any for a second, and for twice as long each time that this is found again.
 *
 * Behaves badly where chunks are as long as several turns of the host's scheduler: each
 * takes twice as long then, and none is unusual.  Jobs of a few milliseconds end before
 * anything is decided, and pay for helpers that do not run until a longer one has.
 *
 * Locking: there is no lock.  A watch is its caller's.  Any thread reads and writes
 * host_cpus: kt_load() and kt_store(); of two that write at once one is lost.
 */
#include "core/rate.h"
#include "kernel/engine/steal.h"

#define COST_SHIFT 10
/* The shortest turns of a host's scheduler are about as long. */
#define STOPPED_NS 1500000
/* Several turns, so that a rate means something; and no job is alone for longer. */
#define PERIOD_NS 6000000
#define PERIOD_LAST_NS 24000000
/* Helpers pay if the rate with them is at least 7/5 of the caller's own. */
#define PAYS_PART 7
#define PAYS_OF 5
/* How long no job has helpers. */
#define FORBID_FIRST_NS 1000000000ull
#define FORBID_LAST_NS 64000000000ull
/* How long no job is suspected after helpers did pay. */
#define TRUST_FIRST_NS 64000000ull
#define TRUST_LAST_NS 4096000000ull

static struct {
	uint64_t lacking_until_ns;
	uint64_t length_ns; /* of the last time without helpers */
	uint64_t trusted_until_ns;
	uint64_t trust_ns; /* how long that was at last */
} host_cpus;

static void begin_period(struct steal_watch *watch, enum steal_phase phase,
			 const struct steal_sample *sample)
{
	watch->phase = phase;
	watch->suspected = false;
	watch->from_ns = sample->now_ns;
	watch->from_units = sample->units;
}

static bool host_lacks_cpus(uint64_t now_ns)
{
	return now_ns < kt_load(&host_cpus.lacking_until_ns);
}

/* Long after the last time it is as if there had been none. */
static void forbid_helpers(uint64_t now_ns)
{
	uint64_t length_ns = kt_load(&host_cpus.length_ns);
	uint64_t until_ns = kt_load(&host_cpus.lacking_until_ns);

	if (!length_ns || now_ns > until_ns + 8 * length_ns)
		length_ns = FORBID_FIRST_NS;
	else
		length_ns = KT_MIN(2 * length_ns, FORBID_LAST_NS);
	kt_store(&host_cpus.length_ns, length_ns);
	kt_store(&host_cpus.lacking_until_ns, now_ns + length_ns);
	kt_store(&host_cpus.trust_ns, 0);
}

/* Chunks of this kind are expensive now and then: do not ask each time. */
static void trust_host(uint64_t now_ns)
{
	uint64_t trust_ns = kt_load(&host_cpus.trust_ns) * 4;

	trust_ns = KT_MIN(KT_MAX(trust_ns, TRUST_FIRST_NS), TRUST_LAST_NS);
	kt_store(&host_cpus.trust_ns, trust_ns);
	kt_store(&host_cpus.trusted_until_ns, now_ns + trust_ns);
}

void steal_begin(struct steal_watch *watch, uint64_t now_ns)
{
	const struct steal_sample none = { .now_ns = now_ns };

	begin_period(watch,
		     host_lacks_cpus(now_ns) ? STEAL_FORBIDDEN : STEAL_HELPED,
		     &none);
	watch->last_ns = now_ns;
	watch->last_units = 0;
	watch->switches = 0;
	watch->cost = 0;
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

/* Was the caller stopped in its last chunk, and not by the guest's scheduler? */
static bool was_stopped(struct steal_watch *watch,
			const struct steal_sample *sample)
{
	uint64_t ns = sample->now_ns > watch->last_ns
			      ? sample->now_ns - watch->last_ns
			      : 0;
	bool stopped =
		was_long(watch, sample->own_units - watch->last_units, ns) &&
		sample->switches == watch->switches;

	watch->last_ns = sample->now_ns;
	watch->last_units = sample->own_units;
	watch->switches = sample->switches;
	return stopped;
}

static uint64_t period_ns(const struct steal_watch *watch,
			  const struct steal_sample *sample)
{
	return sample->now_ns > watch->from_ns ? sample->now_ns - watch->from_ns
					       : 0;
}

static uint64_t period_rate(const struct steal_watch *watch,
			    const struct steal_sample *sample)
{
	uint64_t units = sample->units > watch->from_units
				 ? sample->units - watch->from_units
				 : 0;

	return kt_rate(units, KT_MAX(period_ns(watch, sample), 1));
}

static void watch_helped(struct steal_watch *watch,
			 const struct steal_sample *sample, bool stopped)
{
	if (host_lacks_cpus(sample->now_ns)) {
		watch->phase = STEAL_FORBIDDEN;
		return;
	}
	if (!sample->helped) {
		begin_period(watch, STEAL_HELPED, sample);
		return;
	}
	watch->suspected |=
		stopped &&
		sample->now_ns >= kt_load(&host_cpus.trusted_until_ns);
	if (!watch->suspected || period_ns(watch, sample) < PERIOD_NS)
		return;
	watch->helped_ns = period_ns(watch, sample);
	watch->helped_rate = period_rate(watch, sample);
	watch->phase = STEAL_LEAVING;
}

/* Return: true if helpers did not pay. */
static bool compare_rates(struct steal_watch *watch,
			  const struct steal_sample *sample)
{
	uint64_t alone = period_rate(watch, sample);

	if (watch->helped_rate / PAYS_PART < alone / PAYS_OF) {
		forbid_helpers(sample->now_ns);
		watch->phase = STEAL_FORBIDDEN;
		return true;
	}
	trust_host(sample->now_ns);
	begin_period(watch, STEAL_HELPED, sample);
	return false;
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
			begin_period(watch, STEAL_ALONE, sample);
		break;
	case STEAL_ALONE:
		if (period_ns(watch, sample) >=
		    KT_MIN(watch->helped_ns, PERIOD_LAST_NS))
			*found = compare_rates(watch, sample);
		break;
	case STEAL_FORBIDDEN:
		if (!host_lacks_cpus(sample->now_ns))
			begin_period(watch, STEAL_HELPED, sample);
		break;
	}
	return steal_allows(watch);
}
