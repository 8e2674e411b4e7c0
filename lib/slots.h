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
 * A helper that shall leave and gets no CPU to end its chunk stands aside: its
 * caller says so, and another works in its place, with a slot beyond the limit.
 * When the first has left, a third may take its slot; then the second has to
 * leave.  What such helpers still do of the one chunk that they are in is all
 * that exceeds the cap.
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

/*
 * slots_take - by a helper: a slot to work with
 * @self: its thread id
 *
 * Return: -1 when all are taken.
 */
int slots_take(uint32_t self);

/* slots_put - by the same helper */
void slots_put(int slot);

/*
 * slots_stand_aside - by anybody: thread @holder has @slot, and no CPU
 *
 * Another helper may work in its place.  Nothing happens if @holder has the
 * slot no longer.
 */
void slots_stand_aside(int slot, uint32_t holder);

/*
 * slots_must_leave - by the helper @self that has @slot, between two chunks
 *
 * True when it stood aside, or has a slot beyond the limit although nobody
 * stands aside for it any more.
 */
bool slots_must_leave(int slot, uint32_t self);

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
 * @until_ns: set to when the share changes if nothing else does
 *
 * To be called at least every SLOTS_SILENT_NS while the job runs.
 *
 * Return: helpers.
 */
unsigned slots_share(int demand, unsigned wanted, uint64_t now_ns,
		     uint64_t *until_ns);

/* slots_changes - counts changes of demands: shares may have changed; NULL
 * where there is no table */
const uint32_t *slots_changes(void);

/* slots_demand_alive - by a helper that waits: the job is not silent, although
 * its caller may be in a long chunk.  Nothing if it has ended. */
void slots_demand_alive(int demand, uint64_t now_ns);

/* slots_report - what a job has done by now, for people */
void slots_report(int demand, unsigned helpers, uint64_t units_done);

void slots_demand_end(int demand);

/*
 * slots_used - slots that helpers of this user work with, for people
 *
 * At one moment, and never more than the limit: helpers that stand aside or are
 * beyond the limit only end their chunk.
 */
unsigned slots_used(void);

/* A job that has not spoken for so long is not counted. */
#define SLOTS_SILENT_NS 50000000

#endif /* KTASK_LIB_SLOTS_H */
