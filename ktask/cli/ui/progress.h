/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a command shows of a job on bytes: a bar while it runs, a line of figures
 * in the end.
 */
#ifndef KTASK_CLI_PROGRESS_H
#define KTASK_CLI_PROGRESS_H

#include <ktask/ops.h>

/**
 * progress_run - do the operation @name with a bar called @label
 *
 * An interrupt that was seen stops it.  Return: as ktask_op_run().
 */
int progress_run(const char *label, const char *name,
		 const struct ktask_op_args *args, unsigned max_threads,
		 struct ktask_result *result);

#define PROGRESS_TEXT 160

/** progress_result - "8 GiB in 1.234 s, 6.96 GB/s, 2 threads, 2.4 s of CPU"
 *
 * Returns @buf. */
const char *progress_result(char buf[PROGRESS_TEXT],
			    const struct ktask_result *result, uint64_t bytes);

#endif /* KTASK_CLI_PROGRESS_H */
