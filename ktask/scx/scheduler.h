/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads the BPF scheduler into the kernel, reads its state, and removes it.
 *
 * There is only one.  It ends with the process, however that ends; then the kernel
 * schedules all tasks as before.
 */
#ifndef KTASK_SCX_SCHEDULER_H
#define KTASK_SCX_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "scx/caches.h"

/* scheduler_fits_kernel - false if this kernel lacks a function that the scheduler calls */
bool scheduler_fits_kernel(void);

/*
 * scheduler_load - all ordinary tasks are scheduled by it from now on
 * @is_verbose: let libbpf say on standard error why the kernel refuses it
 * @doing: what failed, if something did
 *
 * Return: 0 or -errno
 */
int scheduler_load(const struct caches *caches, bool is_verbose,
		   const char **doing);

/* scheduler_ended - has the kernel taken it away by itself? */
bool scheduler_ended(void);

/* scheduler_failed - did the kernel end it because of an error?  @reason and @message: the
 * kernel's words */
bool scheduler_failed(const char **reason, const char **message);

/* scheduler_count - on all CPUs together, since it was loaded */
uint64_t scheduler_count(enum scx_count count);

void scheduler_unload(void);

#endif /* KTASK_SCX_SCHEDULER_H */
