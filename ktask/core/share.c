/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Share: max-min fairness, by a search for the water level (see share.h).
 */
#include "core/share.h"

/* Helpers dealt when nobody gets more than @level. */
static uint64_t sum_dealt(const uint32_t *wanted, unsigned nr, uint32_t level)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < nr; i++)
		sum += KT_MIN(wanted[i], level);
	return sum;
}

/* The highest level that fits, by bisection. */
static uint32_t water_level(unsigned limit, const uint32_t *wanted, unsigned nr)
{
	uint32_t low = 0, high = limit;

	while (low < high) {
		uint32_t level = low + (high - low + 1) / 2;

		if (sum_dealt(wanted, nr, level) <= limit)
			low = level;
		else
			high = level - 1;
	}
	return low;
}

unsigned kt_share(unsigned limit, const uint32_t *wanted, unsigned nr,
		  unsigned self, uint64_t turn)
{
	unsigned nr_thirsty = 0, rank = 0;
	uint32_t level;
	uint64_t rest;

	kt_assert(self < nr);
	/* Alone on the machine, as most jobs are. */
	if (nr == 1)
		return KT_MIN(wanted[0], limit);
	level = water_level(limit, wanted, nr);
	rest = limit - sum_dealt(wanted, nr, level);
	kt_assert(sum_dealt(wanted, nr, level) <= limit);
	if (wanted[self] <= level)
		return wanted[self];
	for (unsigned i = 0; i < nr; i++) {
		if (wanted[i] <= level)
			continue;
		rank += i < self;
		nr_thirsty++;
	}
	/* rest < nr_thirsty, or the level would be higher. */
	return level + ((rank + turn % nr_thirsty) % nr_thirsty < rest);
}
