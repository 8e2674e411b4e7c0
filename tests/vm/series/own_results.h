/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a test of the kernel's own, or of LTP, says of itself.
 */
#ifndef KTASK_SERIES_OWN_RESULTS_H
#define KTASK_SERIES_OWN_RESULTS_H

#include <stdbool.h>

/*
 * What one run said: of its lines "ok 1 - it works", or "x.c:9: TPASS: it works", and its
 * exit status.
 */
struct run {
	int status;
	unsigned well, badly, skipped;
};

/* count_results - of the lines of @text, which is cut into them */
void count_results(char *text, struct run *run);

/* is_skip_status - does @program, of the list, end so where this machine lets nothing work? */
bool is_skip_status(const char *program, int status);

#endif /* KTASK_SERIES_OWN_RESULTS_H */
