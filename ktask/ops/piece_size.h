/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many bytes to give a device in one call, so that the call takes no longer than a
 * stall budget.  Arithmetic only: knows neither clock nor device.
 *
 * The aim is half of the budget, because a call may take twice as long as the last one
 * did for the same bytes.  A higher cost per byte counts at once.  A lower one reduces
 * the estimate by a quarter of the difference with each call.
 *
 * Behaves badly if each call has a high fixed cost: the cost per byte seems high in the
 * first calls, and the pieces take a few calls to grow.
 */
#ifndef OPS_PIECE_SIZE_H
#define OPS_PIECE_SIZE_H

#include <stddef.h>

struct piece_limits {
	size_t unit_bytes; /* at least 1; pieces are multiples, but the last */
	size_t max_bytes; /* of a piece; 0: any */
	double stall_sec;
};

/**
 * piece_size - bytes of the next piece
 * @sec_per_byte: from piece_cost(); 0 before the first call
 * @last_bytes: of the piece before, 0 if there was none; the next one is at most
 *	four times as large
 * @left_bytes: at least 1
 *
 * Return: a multiple of the unit, or @left_bytes.
 */
size_t piece_size(const struct piece_limits *limits, double sec_per_byte,
		  size_t last_bytes, size_t left_bytes);

/** piece_cost - seconds per byte to go on with, after @bytes took @sec */
double piece_cost(double sec_per_byte, size_t bytes, double sec);

#endif /* OPS_PIECE_SIZE_H */
