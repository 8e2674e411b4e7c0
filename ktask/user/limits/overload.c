/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See overload.h.
 *
 * Why /proc/loadavg: getrusage() takes 0.2 us instead of 1.8, but only tells whether
 * the calling thread was preempted, after it has run for some milliseconds.  By then
 * most jobs are over, and the first job of a process has made its threads.
 *
 * Locking: there is no lock.
 *	A: written by any thread, read by any: kt_load() and kt_store().  Two threads
 *	   that count at once cost 2 us more.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/deps.h"
#include "user/limits/free_cpus.h"
#include "user/limits/limits.h"
#include "user/limits/overload.h"
#include "user/limits/permits.h"
#include "user/pool/user_pool.h"
#include "user/machine/topo.h"

/* An overload ends after IDLE_COUNTS counts in a row found idle CPUs, at the latest
 * STARVED_NS after a helper was last seen without a CPU. */
#define IDLE_COUNTS 3
#define STARVED_NS 1000000000
/* An overload that was only counted ends after COUNTED_NS.  Then no job counts for
 * STARVED_NS. */
#define COUNTED_NS 200000000
/* A count costs 3 us.  Between two counts there is COUNT_NS without an overload, and
 * COUNT_AGAIN_NS during one, whose end is to be found soon. */
#define COUNT_NS 5000000
#define COUNT_AGAIN_NS 1000000

static struct {
	uint32_t counts; /* idle ones until it is over; 0: no overload; A */
	uint32_t idle; /* CPUs that others left at the last count; A */
	uint64_t starved_ns; /* when a helper was last seen to starve; A */
	uint64_t counted_ns; /* A */
	uint64_t tried_ns; /* when an overload ended without idle CPUs; A */
} overload_state;

static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static bool is_ignored; /* constant from then on */

static void read_environment(void)
{
	const char *how = secure_getenv("KTASK_OVERLOAD");

	is_ignored = how && !strcmp(how, "ignore");
}

static void begin_overload(uint64_t starved_ns)
{
	kt_store(&overload_state.starved_ns, starved_ns);
	kt_store(&overload_state.counts, IDLE_COUNTS);
}

void overload_starved(uint64_t now_ns)
{
	begin_overload(now_ns);
}

/* Count running threads that are not helpers.  Helpers of other jobs give way to these
 * threads, and so do helpers that wait for the next job.  There are at most as many
 * helpers as CPUs, so they are counted only if they can make a difference. */
static unsigned count_others(unsigned own, unsigned cpus)
{
	unsigned mine = own + pool_spinning();
	unsigned running = limits_running();
	unsigned helpers;

	running = running > mine ? running - mine : 0;
	if (running < cpus || running >= 2 * cpus)
		return running;
	helpers = permits_running();
	helpers = helpers > own - 1 ? helpers - (own - 1) : 0;
	return running > helpers ? running - helpers : 0;
}

/* Others that run may be on CPUs that this process may not use.  What is not known is no
 * reason for an overload, nor for its end. */
static unsigned count_idle(unsigned own, unsigned wanted, uint64_t now_ns)
{
	struct kt_cpus cpus;
	unsigned part = free_cpus_part(&cpus);
	unsigned nr = part ? part : topo_nr_cpus();
	unsigned others = count_others(own, nr);
	unsigned idle = others < nr ? nr - others : 0;
	int nr_free;

	if (!part || idle >= wanted)
		return idle;
	nr_free = free_cpus(&cpus, now_ns, true);
	if (nr_free != FREE_CPUS_UNKNOWN)
		return nr_free ? 1 + (unsigned)nr_free : 0;
	return kt_load(&overload_state.counts) ? idle : KT_MAX(idle, 1);
}

/* Negative if another thread has written @since_ns after this one read the clock. */
static int64_t passed_ns(uint64_t now_ns, const uint64_t *since_ns)
{
	return (int64_t)(now_ns - kt_load(since_ns));
}

/* Count anew if that is due.  Return: whether it was. */
static bool count_if_due(unsigned own, unsigned wanted, uint64_t now_ns,
			 int64_t pause_ns)
{
	if (passed_ns(now_ns, &overload_state.counted_ns) < pause_ns)
		return false;
	kt_store(&overload_state.counted_ns, now_ns);
	kt_store(&overload_state.idle, count_idle(own, wanted, now_ns));
	return true;
}

unsigned overload_threads(unsigned own, unsigned wanted, uint64_t now_ns)
{
	uint32_t counts = kt_load(&overload_state.counts);
	unsigned idle;

	/* A job that wants no helper does not count. */
	if (!counts || wanted < 2)
		return wanted;
	if (passed_ns(now_ns, &overload_state.starved_ns) >= STARVED_NS) {
		kt_store(&overload_state.counts, 0);
		kt_store(&overload_state.tried_ns, now_ns);
		return wanted;
	}
	if (count_if_due(own, wanted, now_ns, COUNT_AGAIN_NS)) {
		counts = kt_load(&overload_state.idle) < wanted ? IDLE_COUNTS
								: counts - 1;
		kt_store(&overload_state.counts, counts);
	}
	if (!counts)
		return wanted;
	idle = KT_MAX(kt_load(&overload_state.idle), 1);
	return KT_MIN(idle, wanted);
}

bool overload_begins(uint64_t now_ns)
{
	if (kt_load(&overload_state.counts))
		return overload_threads(1, 2, now_ns) < 2;
	pthread_once(&read_once, read_environment);
	if (is_ignored ||
	    passed_ns(now_ns, &overload_state.tried_ns) < STARVED_NS ||
	    !count_if_due(1, 1, now_ns, COUNT_NS) ||
	    kt_load(&overload_state.idle))
		return false;
	begin_overload(now_ns - (STARVED_NS - COUNTED_NS));
	return true;
}
