/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of `ktask tune` share: options (cmd_tune.c), what is measured
 * (tune_measure.c), the report (tune_report.c).
 */
#ifndef KTASK_CLI_TUNE_H
#define KTASK_CLI_TUNE_H

#include "bench.h"

/** One operation, its curve and what follows from it. */
struct tune {
	struct bench counts; /* rows by thread count */
	struct bench chunks; /* rows by time of a chunk; none: not measured */
	struct ktask_autotune best;
	char path[512]; /* of the file that it was written to; "" not */
};

/**
 * tune_measure - fill the rows and the best of @tune
 * @max_threads: counts from 1 up to it
 *
 * The counts' work, size, runs and machine are set.
 *
 * Return: 0, or 1 after a message, which an interrupt has as well.
 */
int tune_measure(struct tune *tune, unsigned max_threads);

/** tune_load_known - is it known what others did meanwhile? */
bool tune_load_known(const struct tune *tune);

/** tune_quiet - was the machine otherwise idle, as far as that is known? */
bool tune_quiet(const struct tune *tune);

void tune_free(struct tune *tune);

void tune_print(const struct tune *tune);
json_t *tune_json(const struct tune *tune); /* a new reference */

#endif /* KTASK_CLI_TUNE_H */
