/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Overload: do more threads run than there are CPUs?
 *
 * If so, a helper of the lowest priority gets no CPU.  If it has begun a chunk, its caller
 * waits for it, and the job gains nothing.  The answer is the same for all jobs of the
 * process.
 *
 * A process that may not use all CPUs looks at how long its own ones idled, because the
 * running threads may be on others (user/limits/free_cpus.h).
 *
 * Behaves badly if the running threads have the lowest priority too: then jobs lack helpers
 * for 200 ms of each 1.2 s.
 */
#ifndef KTASK_USER_OVERLOAD_H
#define KTASK_USER_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * overload_begins - must a job that begins now do without helpers?
 *
 * Running threads are counted at most every 5 ms, and every millisecond during an
 * overload; idle time is read at most every 100 ms.  The machine and the settings are read
 * only for that.  With KTASK_OVERLOAD=ignore in the environment threads are not counted
 * before a helper has starved.
 */
bool overload_begins(uint64_t now_ns);

/*
 * overload_threads - threads that idle CPUs allow while there is an overload
 * @own: threads of this job that run now
 *
 * An overload ends once CPUs idle.  If it was only counted, it ends after 200 ms at the
 * latest; if a helper starved, a second after that.  The reason is that other threads may
 * have the same low priority as helpers, or may leave them a share.
 *
 * Return: at least 1, at most @wanted; @wanted if there is no overload.
 */
unsigned overload_threads(unsigned own, unsigned wanted, uint64_t now_ns);

/*
 * overload_starved - report that a helper of the lowest priority gets no CPU
 *
 * The helper may take a second or longer to end the chunk that it has begun, and its
 * caller would wait for that at the end of the job.
 */
void overload_starved(uint64_t now_ns);

#endif /* KTASK_USER_OVERLOAD_H */
