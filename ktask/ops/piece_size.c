/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "piece_size.h"

/* The first piece: 2 ms if its pages have to be made, at 2 GB/s. */
#define FIRST_BYTES ((size_t)4 << 20)

#define GROWTH 4

static size_t min_bytes(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Bytes that should take half of the budget. */
static size_t affordable_bytes(double stall_sec, double sec_per_byte)
{
	double bytes = stall_sec / 2 / sec_per_byte;

	/* The largest that converts exactly; also what is not a number. */
	return bytes < 0x1p62 ? (size_t)bytes : (size_t)1 << 62;
}

size_t piece_size(const struct piece_limits *limits, double sec_per_byte,
		  size_t last_bytes, size_t left_bytes)
{
	size_t bytes = FIRST_BYTES;

	if (last_bytes && sec_per_byte > 0) {
		bytes = affordable_bytes(limits->stall_sec, sec_per_byte);
		if (bytes / GROWTH > last_bytes)
			bytes = last_bytes * GROWTH;
	}
	if (limits->max_bytes)
		bytes = min_bytes(bytes, limits->max_bytes);
	bytes = bytes / limits->unit_bytes * limits->unit_bytes;
	if (!bytes)
		bytes = limits->unit_bytes;
	return min_bytes(bytes, left_bytes);
}

double piece_cost(double sec_per_byte, size_t bytes, double sec)
{
	double now = sec / (double)bytes;

	if (!(now < sec_per_byte))
		return now;
	return sec_per_byte - (sec_per_byte - now) / 4;
}
