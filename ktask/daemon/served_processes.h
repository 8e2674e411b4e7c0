/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The processes that are served: finds those that grow, among those that the
 * administrator chose, and polls their mappings.
 *
 * Only the watcher uses this.  It is the only thread besides helpers.
 */
#ifndef DAEMON_SERVED_PROCESSES_H
#define DAEMON_SERVED_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/remote_process.h"

/*
 * served_memory_suffices - does the machine have memory for all that served processes may
 * still touch, and do the process's control groups have it for processes in the same group?
 */
bool served_memory_suffices(const struct remote_process *process);

/*
 * served_processes_serve - look for processes, poll mappings, if that is due
 *
 * Return: when to call again
 */
uint64_t served_processes_serve(uint64_t now_ns);

/* End all jobs, and say what was done (`--verbose`). */
void served_processes_end(void);

extern bool served_is_verbose;

#endif /* DAEMON_SERVED_PROCESSES_H */
