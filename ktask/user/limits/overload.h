/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Overload: do more threads run than there are CPUs?
 *
 * Then a helper of the lowest priority gets no CPU, its caller waits for what it
 * has begun, and a job gains nothing by having asked.  One answer for all jobs of
 * the process.  Behaves badly where the threads that run are confined to other
 * CPUs than the process's, or have the lowest priority too: helpers are then
 * missed for 200 ms of each 1.2 s.
 */
#ifndef KTASK_USER_OVERLOAD_H
#define KTASK_USER_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * overload_begins - must a job that begins now do without helpers?
 *
 * The threads that run are counted every 5 ms at most, and every millisecond while
 * there is an overload.  Reads neither the machine nor the settings but for that.
 * With KTASK_OVERLOAD=ignore in the environment they are not counted before a helper
 * has starved.
 */
bool overload_begins(uint64_t now_ns);

/*
 * overload_threads - threads that idle CPUs allow while there is an overload
 * @own: threads of this job that run now
 *
 * An overload ends once CPUs idle.  One that was only counted ends after 200 ms,
 * and one in which a helper starved a second after that: others may have as low a
 * priority as helpers, or leave them a share.
 *
 * Return: at least 1, at most @wanted; @wanted if there is no overload.
 */
unsigned overload_threads(unsigned own, unsigned wanted, uint64_t now_ns);

/*
 * overload_starved - say that a helper of the lowest priority gets no CPU
 *
 * It may take a second or longer to end the chunk that it has begun, and its caller
 * would wait for that at the end of the job.
 */
void overload_starved(uint64_t now_ns);

#endif /* KTASK_USER_OVERLOAD_H */
