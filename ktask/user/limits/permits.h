/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Permits: the caps hold across all processes of the machine, without a daemon.
 *
 * Each user has one registry in shared memory (user/limits/registry.h), which only this
 * user can write.  It holds
 *   permits  robust mutexes, one for each helper that may run.  A helper locks
 *            one while it works.  When the thread dies, however it dies, the
 *            kernel marks the mutex, and the next thread to try gets it.
 *   entries  how many helpers each running job wants, and when the job last wrote
 *            that.  The entry of a job that is dead or stuck falls silent and no
 *            longer counts.
 *
 * A helper that shall leave may get no CPU to end its chunk.  Then its caller
 * yields the permit for it, and another helper may take a permit beyond the limit.
 * When the first helper has left, a third one may take its permit, and the second
 * has to leave.  So the cap is exceeded only for the rest of the chunk of a helper
 * that yields.
 *
 * Permits are shared between users by the sums of their entries, max-min fair
 * (core/share.h), and then between the jobs of a user.
 *
 * Threat model.  Processes of one user trust each other.  Another user's registry
 * is only read, with pread(2), because a mapping could be truncated under the reader.
 * Its entries have an effect on shares only: a user who asks for everything gets an
 * equal share of the helpers, and nobody else gets less than that.  Any user may start
 * threads without ktask; the caps are only for its jobs.  A user with subordinate ids
 * counts as several.  If somebody else's file has a name, the next name is used.  If all
 * names are taken, or there is no shared memory, each process keeps to its own caps.
 */
#ifndef KTASK_USER_PERMITS_H
#define KTASK_USER_PERMITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * permits_running - helpers of this user that work now, whatever the limit
 *
 * Opens the registry if nobody has yet.
 */
unsigned permits_running(void);

/*
 * permits_open - use the shared registry, if there can be one
 * @limit: helpers on the machine
 *
 * Once per process; a forked child goes on with its parent's.
 */
void permits_open(unsigned limit);

/* permits_shared - false if the caps are the process's own, without a registry */
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
 * permits_entry_begin - register a job that wants @wanted helpers
 * @name: for people, or NULL
 *
 * Return: a number for the calls below; -1 if there is no free entry, which is no
 * error: the job then counts as the only one.
 */
int permits_entry_begin(unsigned wanted, const char *name, uint64_t units_total,
			uint64_t now_ns);

/*
 * permits_share - write what a job wants, and return what it may have
 * @until_ns: set to when the share changes if nothing else does
 *
 * To be called at least every ENTRY_SILENT_NS while the job runs.
 *
 * Return: helpers.
 */
unsigned permits_share(int entry, unsigned wanted, uint64_t now_ns,
		       uint64_t *until_ns);

/* permits_changes - counts changes of entries: shares may have changed; NULL
 * where there is no registry */
const uint32_t *permits_changes(void);

/* permits_entry_touch - by a helper that waits: the job is not silent, although
 * its caller may be in a long chunk.  Nothing if it has ended. */
void permits_entry_touch(int entry, uint64_t now_ns);

/* permits_show_helpers - how many work on a job, for people.  By any thread: behind
 * its end the number is another job's, until that one writes its own.  Sequentially
 * consistent: the caller looks behind it whether the number is still right. */
void permits_show_helpers(int entry, unsigned helpers);

/* permits_show_units - what a job has done by now, for people */
void permits_show_units(int entry, uint64_t units_done);

void permits_entry_end(int entry);

/*
 * permits_used - permits that helpers of this user work with, for people
 *
 * They are counted at one moment and are never more than the limit: a helper that yielded
 * its permit, or is beyond the limit, only finishes its chunk and does not count.
 */
unsigned permits_used(void);

/* A job that has not spoken for so long is not counted. */
#define ENTRY_SILENT_NS 50000000

#endif /* KTASK_USER_PERMITS_H */
