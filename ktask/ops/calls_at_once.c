/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "calls_at_once.h"

/* So little is noise. */
#define MORE_WALL 1.1
/* What hinders costs one of two threads its whole gain, and so doubles what a call takes.
 * Half of the calls may have had none beside them. */
#define MORE_CPU 1.25

/* More than @times as much for each byte? */
static bool costs_more(uint64_t ns, uint64_t bytes, uint64_t alone_ns,
		       uint64_t alone_bytes, double times)
{
	return (double)ns * (double)alone_bytes >
	       (double)alone_ns * (double)bytes * times;
}

bool calls_at_once_gain(const struct calls_cost *alone,
			const struct calls_cost *at_once, unsigned threads)
{
	if (threads < 2 || !alone->bytes || !at_once->bytes)
		return true;
	return !costs_more(at_once->wall_ns, at_once->bytes, alone->wall_ns,
			   alone->bytes, MORE_WALL) ||
	       !costs_more(at_once->cpu_ns, at_once->bytes, alone->cpu_ns,
			   alone->bytes, MORE_CPU);
}
