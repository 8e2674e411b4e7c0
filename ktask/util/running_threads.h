/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many threads run on the machine: more than there are CPUs?
 */
#ifndef KTASK_UTIL_RUNNING_THREADS_H
#define KTASK_UTIL_RUNNING_THREADS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cpus.h"
#include "util/file.h"

/* overload_is_ignored - KTASK_OVERLOAD=ignore */
static inline bool overload_is_ignored(void)
{
	const char *how = secure_getenv("KTASK_OVERLOAD");

	return how && !strcmp(how, "ignore");
}

struct machine_load {
	unsigned running; /* threads that run now, the calling one included */
	unsigned threads; /* of all users, running or not */
	unsigned nr_cpus; /* that the calling thread may use */
};

/* machine_load_read - in 3 us; false: /proc/loadavg or the affinity cannot be read */
static inline bool machine_load_read(struct machine_load *load)
{
	char text[128];
	struct kt_cpus cpus;

	if (file_text("/proc/loadavg", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*s %*s %*s %u/%u", &load->running, &load->threads) !=
		    2 ||
	    !cpus_get_affinity(&cpus))
		return false;
	load->nr_cpus = cpus_count(&cpus);
	return true;
}

/* cpus_are_busy - more threads of the machine run than this one has CPUs.  Where it has
 * not all of them, these threads may be elsewhere: see util/idle_cpus.h. */
static inline bool cpus_are_busy(void)
{
	struct machine_load load;

	return machine_load_read(&load) && load.running > load.nr_cpus;
}

/* cpus_are_overloaded - and that is not to be ignored: helpers would disturb others */
static inline bool cpus_are_overloaded(void)
{
	return !overload_is_ignored() && cpus_are_busy();
}

#endif /* KTASK_UTIL_RUNNING_THREADS_H */
