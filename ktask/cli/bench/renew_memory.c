/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Renewing free memory: see renew_memory.h.  Cost is CPU time rather than time: beside
 * other processes a touch takes longer without costing more.  The time that the host
 * needs counts as CPU time, because the guest's CPU seems to run.
 *
 * Behaves badly if the host takes memory back within the second that a run lasts: then
 * the run meets missing memory nevertheless.
 */
#include <sys/mman.h>

#include <ktask/ops.h>

#include "renew_memory.h"
#include "util/clock.h"

#define MAX_TOUCHES 3
/* Memory was missing if a touch costs this many times the least cost. */
#define SLOW_FACTOR 2
/* Shorter times are rounding by clock ticks. */
#define SLOW_SECONDS 0.01

static int touch_and_free(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error;

	if (addr == MAP_FAILED)
		return -1;
	madvise(addr, bytes, MADV_HUGEPAGE);
	error = ktask_populate(addr, bytes, 0);
	munmap(addr, bytes);
	return error;
}

/* What it cost; less than 0: it could not be done. */
static double measure_touch(struct renewal *renewal, size_t bytes)
{
	double seconds, cost, begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);

	if (touch_and_free(bytes))
		return -1;
	seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
	cost = seconds / bytes;
	if (!renewal->most_s_per_byte || cost < renewal->least_s_per_byte)
		renewal->least_s_per_byte = cost;
	if (cost > renewal->most_s_per_byte)
		renewal->most_s_per_byte = cost;
	return seconds;
}

double renewal_factor(const struct renewal *renewal)
{
	if (renewal->least_s_per_byte <= 0)
		return 1;
	return renewal->most_s_per_byte / renewal->least_s_per_byte;
}

bool renewal_is_slow(double least_seconds, double seconds)
{
	return seconds > SLOW_FACTOR * least_seconds &&
	       seconds - least_seconds > SLOW_SECONDS;
}

static bool is_slow(const struct renewal *renewal, size_t bytes, double seconds)
{
	return renewal_is_slow(renewal->least_s_per_byte * bytes, seconds);
}

void renew_free_memory(struct renewal *renewal, size_t bytes)
{
	double first = measure_touch(renewal, bytes), last = first;
	int touches;

	/* The first run has nothing to compare with: it always goes on. */
	for (touches = 1; touches < MAX_TOUCHES && last >= 0; touches++) {
		if (renewal->runs && !is_slow(renewal, bytes, last))
			break;
		last = measure_touch(renewal, bytes);
	}
	renewal->runs++;
	renewal->slow_runs += is_slow(renewal, bytes, first);
}
