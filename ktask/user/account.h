/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Accounts: one line for each job that has ended, for `ktask stat`.
 *
 * KTASK_STAT names a file that was made for this purpose: a regular file of the calling
 * user that nobody else may use and that begins with ACCOUNT_HEADER.  The library writes
 * to no other file, so a wrong or stale name harms nobody.  Set-user-ID programs ignore
 * the variable.  Without it a job pays one load.  A job that is too small to split is a
 * function call and has no line.
 */
#ifndef KTASK_USER_ACCOUNT_H
#define KTASK_USER_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#define ACCOUNT_HEADER "ktask-stat 1\n"
/* No line is added to a file that is longer: 600,000 jobs. */
#define ACCOUNT_BYTES_MAX (64 << 20)

struct account {
	const char *name; /* NULL: "job" */
	int error;
	unsigned threads, lent;
	uint64_t units, chunks;
	uint64_t wall_ns, caller_cpu_ns, helper_cpu_ns;
};

/* account_on - does anybody want to know? */
bool account_on(void);

/* account_job - add a line, if that can be done */
void account_job(const struct account *account);

#endif /* KTASK_USER_ACCOUNT_H */
