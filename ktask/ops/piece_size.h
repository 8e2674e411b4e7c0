/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much a device is given in one call, so that the call takes no longer than
 * a stall budget.  Pure: knows neither clock nor device.
 *
 * Half of the budget is aimed at, since a call may take twice as long as the last
 * one did for the same bytes.  The dearest byte counts: a cost that rises is taken
 * at once, one that falls by a quarter with each call.
 *
 * Behaves badly where a call costs much whatever its size: the cost of a byte then
 * looks high in the first calls, and the pieces take a few calls to grow.
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
 * @sec_per_byte: piece_learn(); 0 before the first call
 * @last_bytes: of the piece before, 0 if there was none: at most four times as
 *	much follows
 * @left_bytes: at least 1
 *
 * Return: a multiple of the unit, or @left_bytes.
 */
size_t piece_size(const struct piece_limits *limits, double sec_per_byte,
		  size_t last_bytes, size_t left_bytes);

/** piece_learn - what a byte costs, after @bytes of them took @sec */
double piece_learn(double sec_per_byte, size_t bytes, double sec);

#endif /* OPS_PIECE_SIZE_H */
