/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Permits: the caps hold across all processes of the machine, without a daemon.
 *
 * Each user has one table in shared memory, writable by that user only.  It
 * holds
 *   permits    robust mutexes, one a helper that may run.  A helper locks one
 *            while it works; the kernel marks it when the thread dies, however
 *            it dies, and the next to try gets it.
 *   demands  what running jobs want, with the time they last said so.  A job
 *            that is dead or stuck falls silent and counts no more.
 *
 * A helper that shall leave may get no CPU to end its chunk.  Its caller then
 * yields the permit for it, and another helper may take a permit beyond the limit.
 * When the first has left, a third may take the first permit, and the second has to
 * leave.  The cap is exceeded only by the rest of the chunk that a yielding helper
 * is in.
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
#ifndef KTASK_LIB_PERMITS_H
#define KTASK_LIB_PERMITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * permits_open - use the shared table, if it can be had
 * @limit: helpers on the machine
 *
 * Once per process; a forked child goes on with its parent's.
 */
void permits_open(unsigned limit);

/* permits_shared - is there a table, or are the caps the process's own? */
bool permits_shared(void);

/* permits_set_limit - the machine has changed; permits that are held stay so */
void permits_set_limit(unsigned limit);

/*
 * permits_take - by a helper: a permit to work with
 * @self: its thread id
 *
 * Return: -1 when all are taken.
 */
int permits_take(uint32_t self);

/* permits_put - by the same helper */
void permits_put(int permit);

/*
 * permits_yield - let another helper work while @holder of @permit gets no CPU
 *
 * By any thread.  Does nothing if @holder does not have the permit any more.
 */
void permits_yield(int permit, uint32_t holder);

/*
 * permits_must_leave - by the helper @self that has @permit, between two chunks
 *
 * True if its permit was yielded, or if it has a permit beyond the limit and the
 * helper that yielded has left.
 */
bool permits_must_leave(int permit, uint32_t self);

/*
 * permits_demand_begin - a job says that it runs and wants @wanted helpers
 * @name: for people, or NULL
 *
 * Return: a number for the calls below; -1 if there is no room, which is no
 * error: the job then counts as the only one.
 */
int permits_demand_begin(unsigned wanted, const char *name,
			 uint64_t units_total, uint64_t now_ns);

/*
 * permits_share - say again what a job wants, and learn what it may have
 * @until_ns: set to when the share changes if nothing else does
 *
 * To be called at least every PERMITS_SILENT_NS while the job runs.
 *
 * Return: helpers.
 */
unsigned permits_share(int demand, unsigned wanted, uint64_t now_ns,
		       uint64_t *until_ns);

/* permits_changes - counts changes of demands: shares may have changed; NULL
 * where there is no table */
const uint32_t *permits_changes(void);

/* permits_demand_alive - by a helper that waits: the job is not silent, although
 * its caller may be in a long chunk.  Nothing if it has ended. */
void permits_demand_alive(int demand, uint64_t now_ns);

/* permits_report - what a job has done by now, for people */
void permits_report(int demand, unsigned helpers, uint64_t units_done);

void permits_demand_end(int demand);

/*
 * permits_used - permits that helpers of this user work with, for people
 *
 * At one moment, and never more than the limit: helpers that yielded their permit
 * or are beyond the limit only end their chunk.
 */
unsigned permits_used(void);

/* A job that has not spoken for so long is not counted. */
#define PERMITS_SILENT_NS 50000000

#endif /* KTASK_LIB_PERMITS_H */
