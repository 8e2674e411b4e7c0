/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The neighbours: processes of normal priority, each bound to one CPU, that
 * count what they get done.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdint.h>

enum load_kind {
	LOAD_CPU, /* registers only */
	LOAD_MEMORY, /* writes over far more than the last-level cache */
};

struct load;

/*
 * load_start - one process each on the last @nr CPUs of this process
 *
 * Returns when all of them work.  They die with this process.
 * Return: NULL without memory or processes; errno says why.
 */
struct load *load_start(enum load_kind kind, unsigned nr);

/* load_done - steps that they did so far, all together */
uint64_t load_done(const struct load *load);

/* load_pause, load_resume - stop and go on, at once */
void load_pause(struct load *load);
void load_resume(struct load *load);

/* load_stop - end them and wait until they are gone; NULL does nothing */
void load_stop(struct load *load);

#endif /* BENCH_LOAD_H */
