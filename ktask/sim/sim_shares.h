/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shares: how many threads each job of the simulated machine may have, by the
 * rules of the library.
 */
#ifndef KTASK_SIM_SHARES_H
#define KTASK_SIM_SHARES_H

#include "sim/sim_host.h"

void shares_reset(unsigned permits);
void shares_set_permits(unsigned permits);

/* shares_register - a job wants helpers; shares_unregister - it wants none */
void shares_register(struct sim_job *job);
void shares_unregister(struct sim_job *job);

/*
 * shares_threads - how many of the @wanted threads @job may have
 * @until_ns: set to when the share changes by itself
 */
unsigned shares_threads(struct sim_job *job, unsigned wanted, uint64_t now_ns,
			uint64_t *until_ns);

/* shares_entries_read - how often the wish of a job was read, for statistics */
uint64_t shares_entries_read(void);

/* shares_overload_seen - note that a helper gets no CPU */
void shares_overload_seen(void);

/* shares_overload_begins - must a job begin alone, as more threads run than there
 * are CPUs? */
bool shares_overload_begins(void);

/* shares_in_overload - limit @wanted to the idle CPUs while an overload lasts
 * @own: threads of the job that run now */
unsigned shares_in_overload(unsigned own, unsigned wanted);

#endif /* KTASK_SIM_SHARES_H */
