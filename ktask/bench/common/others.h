/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What else the machine did meanwhile: figures taken beside other work mean
 * little, and the report says so.
 */
#ifndef BENCH_OTHERS_H
#define BENCH_OTHERS_H

struct others {
	double busy_seconds; /* of all CPUs */
	double own_seconds; /* this process and its children */
	double wall_seconds;
};

struct others others_now(void);

/* CPUs that others kept busy since then, on average. */
double others_cpus(const struct others *then);

#endif /* BENCH_OTHERS_H */
