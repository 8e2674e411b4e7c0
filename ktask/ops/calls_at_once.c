/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "calls_at_once.h"

/* Two of each thread, mostly. */
#define ENOUGH_BESIDE 4

/* If a call costs this many times as much beside another, two threads gain a sixth at
 * best: calls of the first trials are often cheaper than later ones. */
#define MORE_CPU 1.7

/* This part of its time, and what is left at both ends, is as good as none. */
#define NEARLY 8

static void add_alone(struct calls_seen *seen, const struct call_cost *call)
{
	double ns = (double)call->cpu_ns / (double)call->bytes;

	if (!seen->alone_ns || ns < seen->alone_ns)
		seen->alone_ns = ns;
}

static void add_beside(struct calls_seen *seen, const struct call_cost *call)
{
	seen->beside_ns += call->cpu_ns;
	seen->beside_bytes += call->bytes;
	seen->nr_beside++;
}

void calls_seen_add(struct calls_seen *seen, const struct call_cost *call)
{
	uint64_t little_ns = call->wall_ns / NEARLY;

	if (!call->bytes)
		return;
	if (call->beside_ns <= little_ns)
		add_alone(seen, call);
	else if (call->beside_ns >= call->wall_ns - little_ns)
		add_beside(seen, call);
}

bool calls_seen_enough(const struct calls_seen *seen)
{
	return seen->alone_ns > 0 && seen->nr_beside >= ENOUGH_BESIDE;
}

bool calls_at_once_gain(const struct calls_seen *seen)
{
	double alone_ns = seen->alone_ns * (double)seen->beside_bytes;

	return !seen->nr_beside || alone_ns <= 0 ||
	       (double)seen->beside_ns < MORE_CPU * alone_ns;
}
