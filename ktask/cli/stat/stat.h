/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of `ktask stat` share: starting the command (cmd_stat.c),
 * reading what its jobs wrote (stat_read.c), the report (stat_report.c).
 */
#ifndef KTASK_CLI_STAT_H
#define KTASK_CLI_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* All are the library's, user/account.h: who reads them must agree. */
#define STAT_HEADER "ktask-stat 1\n"
#define STAT_BYTES_MAX (64 << 20)
/* More than a line has. */
#define STAT_LINE 256

/** All jobs of one name. */
struct stat_op {
	char name[16];
	bool bytes; /* an operation of ours: its units are bytes */
	uint64_t jobs, failed;
	uint64_t units, chunks;
	uint64_t threads; /* of all jobs together */
	unsigned threads_most;
	uint64_t lent;
	double wall_seconds, caller_seconds, helper_seconds;
	double single_rate; /* units a second of one thread; 0 unknown */
};

struct stat_jobs {
	struct stat_op *ops;
	unsigned nr_ops;
	uint64_t nr_jobs;
	unsigned nr_bad; /* lines that no job wrote */
	bool full; /* there may have been more jobs */
};

/** What the command itself cost. */
struct stat_command {
	char **argv;
	int status; /* as waitpid(2) has it */
	double wall_seconds, user_seconds, system_seconds;
};

/** stat_read - from @fd; 0 or -ENOMEM.  To be ended with stat_free(). */
int stat_read(int fd, struct stat_jobs *jobs);
void stat_free(struct stat_jobs *jobs);

/** stat_speedup - over one thread, as far as that is known; else 0 */
double stat_speedup(const struct stat_op *op);

void stat_print(FILE *out, const struct stat_command *command,
		const struct stat_jobs *jobs);
json_t *stat_json(const struct stat_command *command,
		  const struct stat_jobs *jobs); /* a new reference */

#endif /* KTASK_CLI_STAT_H */
