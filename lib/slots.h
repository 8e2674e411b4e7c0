/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Slots: the caps hold across all processes of the machine, without a daemon.
 *
 * Each user has one table in shared memory, writable by that user only.  It
 * holds
 *   slots    robust mutexes, one a helper that may run.  A helper locks one
 *            while it works; the kernel marks it when the thread dies, however
 *            it dies, and the next to try gets it.
 *   demands  what running jobs want, with the time they last said so.  A job
 *            that is dead or stuck falls silent and counts no more.
 *
 * Users share by what their tables demand, max-min fair (core/share.h), and so
 * do the jobs of a user.
 *
 * Threat model.  Processes of one user trust each other.  Another user's table
 * is only read, with pread(2) (a mapping could be truncated under us), and its
 * demands are believed only as far as fairness goes: a user who demands
 * everything gets an equal share of the helpers, and blocks nobody below one.
 * A user may always start threads without asking: caps are for those who take
 * part.  A user with subordinate ids counts as several.  A name that somebody
 * else squats is stepped over; when all names are taken, or there is no shared
 * memory, the process keeps its caps to itself.
 */
#ifndef KTASK_LIB_SLOTS_H
#define KTASK_LIB_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * slots_open - use the shared table, if it can be had
 * @limit: helpers on the machine
 *
 * Once per process; a forked child goes on with its parent's.
 */
void slots_open(unsigned limit);

/* slots_shared - is there a table, or are the caps the process's own? */
bool slots_shared(void);

/* slots_set_limit - the machine has changed; slots that are held stay so */
void slots_set_limit(unsigned limit);

/* slots_take - by a helper: a slot to work with; -1 when all are taken */
int slots_take(void);

/* slots_put - by the same helper */
void slots_put(int slot);

/*
 * slots_demand_begin - a job says that it runs and wants @wanted helpers
 * @name: for people, or NULL
 *
 * Return: a number for the calls below; -1 if there is no room, which is no
 * error: the job then counts as the only one.
 */
int slots_demand_begin(unsigned wanted, const char *name, uint64_t units_total,
		       uint64_t now_ns);

/*
 * slots_share - say again what a job wants, and learn what it may have
 *
 * To be called at least every SLOTS_SILENT_NS while the job runs.
 *
 * Return: helpers.
 */
unsigned slots_share(int demand, unsigned wanted, uint64_t now_ns);

/* slots_report - what a job has done by now, for people */
void slots_report(int demand, unsigned helpers, uint64_t units_done);

void slots_demand_end(int demand);

/* slots_used - helpers of this user that hold a slot now, for people */
unsigned slots_used(void);

/* A job that has not spoken for so long is not counted. */
#define SLOTS_SILENT_NS 50000000

#endif /* KTASK_LIB_SLOTS_H */
