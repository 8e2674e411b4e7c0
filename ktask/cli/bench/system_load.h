/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How busy other processes are during a measurement, and how much CPU time the host of a
 * virtual machine takes away.  A figure taken beside other work means little, and the
 * report says so.
 */
#ifndef KTASK_CLI_SYSTEM_LOAD_H
#define KTASK_CLI_SYSTEM_LOAD_H

#include <stdbool.h>

struct busy {
	double machine_seconds; /* CPU time of everybody on this machine */
	double stolen_seconds; /* that CPUs waited for the host */
	double own_seconds; /* CPU time of this process and its children */
	double wall_seconds;
	bool unknown; /* of the machine: /proc/stat cannot be read */
};

/** busy_now - the counters as they stand */
struct busy busy_now(void);

/** busy_others - CPUs that other processes kept busy, on average */
double busy_others(const struct busy *begin, const struct busy *end);

/** busy_stolen - CPUs that the host gave to others, on average */
double busy_stolen(const struct busy *begin, const struct busy *end);

#endif /* KTASK_CLI_SYSTEM_LOAD_H */
