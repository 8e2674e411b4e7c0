/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steal: whether the host of a virtual machine lacks CPUs for helpers.
 *
 * A job has one struct steal_watch, which is its caller's.  steal_step() is given a
 * sample after each chunk of the caller and says whether the job may have helpers.
 */
#ifndef KTASK_KERNEL_STEAL_H
#define KTASK_KERNEL_STEAL_H

#include "core/deps.h"

enum steal_phase {
	STEAL_HELPED, /* the job may have helpers */
	STEAL_LEAVING, /* the caller was stopped: helpers have to leave */
	STEAL_ALONE, /* the caller's own rate is measured */
	STEAL_RETURNING, /* helpers may come; none has done a chunk yet */
	STEAL_TRIED, /* the rate with helpers is measured */
	STEAL_FORBIDDEN, /* helpers do not pay: none for some time */
};

struct steal_watch {
	enum steal_phase phase;
	bool suspected; /* the caller was stopped in this phase */
	uint64_t from_ns, from_units; /* the beginning of the phase */
	uint64_t helped_rate; /* before helpers left, or 0 */
	uint64_t alone_rate;
	uint64_t others_units; /* by helpers, before they came back */
	uint64_t forbidden_until_ns; /* for this job */

	/* The caller's last chunk. */
	uint64_t last_ns, last_units, switches;
	uint64_t cost; /* the least that a unit took, in 1024ths of ns */
	uint64_t stolen_ns; /* from @cpu, by then */
	unsigned int cpu;
};

/* The time after a chunk of the caller, and what was done by then. */
struct steal_sample {
	uint64_t now_ns;
	uint64_t units; /* by all threads of the job */
	uint64_t own_units; /* by the caller */
	uint64_t switches; /* how often the caller slept or was preempted */
	bool helped; /* a helper is in the job, or may be */

	bool tells; /* the hypervisor has a clock for stolen time */
	unsigned int cpu; /* that the caller runs on, if so */
	uint64_t stolen_ns; /* from this one, ever */
	bool helper_stopped; /* the CPU of a helper, just now */
};

/* steal_begin - a job begins */
void steal_begin(struct steal_watch *watch, uint64_t now_ns);

/*
 * steal_step - judge the caller's last chunk
 * @found: set if this sample shows that helpers do not pay: the job has none for some time
 *
 * Return: may the job have helpers?
 */
bool steal_step(struct steal_watch *watch, const struct steal_sample *sample,
		bool *found);

/* steal_allows - what steal_step() said last */
static inline bool steal_allows(const struct steal_watch *watch)
{
	return watch->phase == STEAL_HELPED ||
	       watch->phase == STEAL_RETURNING || watch->phase == STEAL_TRIED;
}

#endif /* KTASK_KERNEL_STEAL_H */
