/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a command shows of a job on bytes: a bar while it runs, a line of figures
 * in the end.
 */
#ifndef KTASK_CLI_PROGRESS_H
#define KTASK_CLI_PROGRESS_H

#include <ktask/ktask.h>

/** progress_bar - a ktask_progress_func; its argument is a struct bar.  Stops
 * the job when an interrupt was seen. */
int progress_bar(const struct ktask_progress *now, void *bar);

#define PROGRESS_TEXT 160

/** progress_result - "8 GiB in 1.234 s, 6.96 GB/s, 2 threads, 2.4 s of CPU"
 *
 * Returns @buf. */
const char *progress_result(char buf[PROGRESS_TEXT],
			    const struct ktask_result *result, uint64_t bytes);

#endif /* KTASK_CLI_PROGRESS_H */
