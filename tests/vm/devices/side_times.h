/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How long registering the same memory takes in several ways, which take turns,
 * KTASK_BENCH_ROUNDS times or once; three times as often if it is present.  Times are
 * comments; no verdict depends on them.
 */
#ifndef TESTS_VM_DEVICES_SIDE_TIMES_H
#define TESTS_VM_DEVICES_SIDE_TIMES_H

#include <string.h>
#include <sys/mman.h>

#include "counts.h"

#define SIDES_MAX 9
#define ROUNDS_MAX 101

struct side_time {
	double seconds;
	double longest; /* call, in seconds */
};

/* A ratio is the first side's time divided by this side's. */
struct timed_side {
	const char *name;
	struct side_time (*run)(char *at, size_t len, size_t nr);
	size_t nr; /* for run */
};

static inline int compare_seconds(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline double median_seconds(double *seconds, unsigned nr)
{
	qsort(seconds, nr, sizeof(*seconds), compare_seconds);
	return seconds[nr / 2];
}

static inline struct side_time run_side(const struct timed_side *side,
					size_t len, bool present)
{
	char *at = map_absent(len);
	struct side_time took;

	if (present)
		memset(at, 1, len);
	took = side->run(at, len, side->nr);
	munmap(at, len);
	return took;
}

/* Each side follows each other one: what runs before leaves memory, caches and threads
 * behind. */
static inline void shuffle_sides(unsigned *order, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		unsigned other = (unsigned)rand() % (i + 1);

		order[i] = order[other];
		order[other] = i;
	}
}

/* Return: the median of each side, in seconds, until it is called again. */
static inline const double *time_sides(const struct timed_side *sides,
				       unsigned nr_sides, size_t len,
				       bool present)
{
	const char *asked = getenv("KTASK_BENCH_ROUNDS");
	unsigned rounds = asked ? (unsigned)atoi(asked) : 1;
	static double seconds[SIDES_MAX][ROUNDS_MAX];
	static double ratios[SIDES_MAX][ROUNDS_MAX];
	static double medians[SIDES_MAX];
	double longest[SIDES_MAX] = { 0 };

	/* A tenth of the time, of which a hundredth counts. */
	if (asked && present)
		rounds *= 3;
	assert_in_range(rounds, 1, ROUNDS_MAX);
	assert_in_range(nr_sides, 1, SIDES_MAX);
	for (unsigned round = 0; round < rounds; round++) {
		unsigned order[SIDES_MAX];

		shuffle_sides(order, nr_sides);
		for (unsigned i = 0; i < nr_sides; i++) {
			unsigned side = order[i];
			struct side_time took =
				run_side(&sides[side], len, present);

			seconds[side][round] = took.seconds;
			if (took.longest > longest[side])
				longest[side] = took.longest;
		}
		for (unsigned i = 0; i < nr_sides; i++)
			ratios[i][round] =
				seconds[0][round] / seconds[i][round];
	}
	for (unsigned i = 0; i < nr_sides; i++) {
		medians[i] = median_seconds(seconds[i], rounds);
		printf("# time: %zu MiB, %s, %s: %.1f ms, %.2f times as fast, "
		       "longest call %.1f ms\n",
		       len / MIB, present ? "present" : "absent", sides[i].name,
		       medians[i] * 1e3, median_seconds(ratios[i], rounds),
		       longest[i] * 1e3);
	}
	return medians;
}

#endif /* TESTS_VM_DEVICES_SIDE_TIMES_H */
