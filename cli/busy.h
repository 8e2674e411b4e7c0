/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How busy other processes are while we measure: a figure taken beside other
 * work means little, and the report shall say so.
 */
#ifndef KTASK_CLI_BUSY_H
#define KTASK_CLI_BUSY_H

struct busy {
	double machine_seconds; /* CPU time of everybody */
	double own_seconds; /* CPU time of this process */
	double wall_seconds;
};

/** busy_now - the counters as they stand */
struct busy busy_now(void);

/** busy_others - CPUs that others kept busy since @then, on average */
double busy_others(const struct busy *then);

#endif /* KTASK_CLI_BUSY_H */
