/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The scheduler scx_ktask, as a process of the test.
 *
 * Waits as long as a slow machine takes: only a test that would wait for ever fails.
 */
#ifndef SCHEDULER_PROCESS_H
#define SCHEDULER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* scheduler_start - begin to schedule by it; the test fails if that fails */
pid_t scheduler_start(void);

/* scheduler_end - send @signal and wait until the kernel schedules by itself again
 *
 * Return: the status of the process, as of waitpid(2)
 */
int scheduler_end(pid_t pid, int signal);

/* scheduler_is - is this what the kernel says of its state? */
bool scheduler_is(const char *state);

/* scheduler_runs - is it there, and no other? */
bool scheduler_runs(void);

/* scheduler_counted - what it said at its end of @what, words of its line */
uint64_t scheduler_counted(const char *what);

#endif /* SCHEDULER_PROCESS_H */
