/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rates by the number of threads: published ones, ones measured here, and shapes that
 * a job may meet.  The simulation's benchmark and the tests of core/tune.c use them.
 */
#include <stddef.h>

#include "sim/thread_curves.h"

/* What was published is of the founders' clients on machines of 88 to 288 CPUs, as
 * rates: the time for the job, upside down.  Each point of these is a published one. */
const struct curve curves[] = {
	{ "linear", NULL, { { 64, 64 } }, 64 },
	{ "saturates at 8", NULL, { { 8, 8 } }, 8 },
	{ "saturates at 12", NULL, { { 12, 12 } }, 12 },
	{ "flat", NULL, { { 1, 1 } }, 1 },
	{ "falls after 16",
	  NULL,
	  { { 16, 1 / 16.0 }, { 32, 1 / 20.0 }, { 64, 1 / 24.0 } },
	  16 },
	{ "huge pages at boot",
	  "published",
	  { { 8, 1 / 44.0 },
	    { 16, 1 / 22.0 },
	    { 32, 1 / 16.0 },
	    { 64, 1 / 19.0 },
	    { 128, 1 / 20.0 } },
	  32 },
	{ "pinning, contended",
	  "published",
	  { { 1, 1 }, { 8, 3.2 }, { 16, 1.9 } },
	  8 },
	{ "clearing gigantic pages",
	  "published",
	  { { 1, 1 }, { 4, 4.28 }, { 8, 8.39 }, { 16, 10.44 } },
	  16 },
	{ "pinning",
	  "published",
	  { { 1, 1 },
	    { 2, 1.9 },
	    { 4, 3.6 },
	    { 8, 6.4 },
	    { 12, 8.6 },
	    { 16, 10.2 } },
	  16 },
	/* What two threads measured here, and on. */
	{ "a cache line",
	  "measured",
	  { { 1, 1 }, { 2, 0.45 }, { 64, 0.3 } },
	  1 },
	{ "huge pages", "measured", { { 1, 1 }, { 2, 1.43 }, { 3, 1.5 } }, 3 },
	{ "rises slowly",
	  NULL,
	  { { 1, 1 }, { 2, 1.1 }, { 4, 1.25 }, { 8, 1.4 }, { 16, 1.6 } },
	  16 },
};

const unsigned nr_curves = sizeof(curves) / sizeof(curves[0]);

double curve_rate(const struct curve *curve, unsigned threads)
{
	unsigned few = 0;
	double rate = 0;

	for (unsigned i = 0;
	     i < sizeof(curve->points) / sizeof(curve->points[0]); i++) {
		unsigned many = curve->points[i].threads;

		if (!many)
			break;
		if (threads <= many)
			return rate + (curve->points[i].rate - rate) *
					      (threads - few) / (many - few);
		few = many;
		rate = curve->points[i].rate;
	}
	return rate;
}

double curve_best(const struct curve *curve, unsigned max)
{
	double best = 0;

	for (unsigned i = 1; i <= max; i++)
		if (curve_rate(curve, i) > best)
			best = curve_rate(curve, i);
	return best;
}
