/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which thread counts `ktask tune` measures, and which one it takes.
 *
 * Arithmetic only: no clock, no thread.
 */
#ifndef KTASK_CLI_TUNE_COUNTS_H
#define KTASK_CLI_TUNE_COUNTS_H

#define PICK_MAX 32 /* more counts than are ever asked for */

/** A count that was measured. */
struct pick {
	unsigned threads;
	double seconds; /* median */
};

/**
 * pick_first - counts to begin with: 1, 2, 4 and so on, and @max
 *
 * Return: how many.
 */
unsigned pick_first(unsigned max, unsigned counts[PICK_MAX]);

/**
 * pick_next - counts to measure after @points, which ascend
 *
 * The middles on both sides of the best, until these are an eighth away.
 *
 * Return: how many; 0: the best is found.
 */
unsigned pick_next(const struct pick *points, unsigned nr, unsigned counts[2]);

/**
 * pick_best - index of the least count that is as good as any
 *
 * More threads that gain less than a thirtieth would only disturb other work.
 */
unsigned pick_best(const struct pick *points, unsigned nr);

#endif /* KTASK_CLI_TUNE_COUNTS_H */
