/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A large mapping of a process that is served, and the windows made in it.
 *
 * Locking: there is no lock.
 *	W: the watcher's
 *	J: written by the watcher while no job works on the mapping; read by helpers
 *	A: atomic; of any thread
 */
#ifndef DAEMON_REMOTE_MAPPING_H
#define DAEMON_REMOTE_MAPPING_H

#include <stdatomic.h>

#include <ktask/ktask.h>

#include "ahead/poll_schedule.h"
#include "ahead/touch_frontier.h"
#include "daemon/remote_process.h"

struct remote_mapping {
	const struct remote_process *process; /* constant */
	uintptr_t start, end; /* constant; whole pages */
	struct touch_tracker tracker; /* W */
	struct poll_schedule schedule; /* W */
	uint64_t helped_ns; /* when a helper had a CPU for a whole window; W */
	bool given_up; /* W: it behaves in a way that nobody here understands */
	bool large_pages; /* W: small ones are not what a touch makes */
	struct ktask_job *job; /* W */
	struct ktask_result result; /* W, while there is no job */
	struct touch_window window; /* J */
	bool huge; /* J */
	atomic_uint nr_blocks; /* A: that no helper has come to the end of */
	atomic_ulong made_pages; /* A */
	atomic_bool preempted; /* A: a helper has lost its CPU */
	atomic_bool grew; /* A: a touch makes more than a page */
	atomic_int error; /* A: of a helper; 0: none */
};

/* Read which pages a touch makes on this machine; false: sizes that cannot be told
 * apart. */
bool remote_mapping_init_pages(void);

/* NULL: no memory */
struct remote_mapping *remote_mapping_new(const struct remote_process *process,
					  uintptr_t start, uintptr_t end,
					  uint64_t now_ns);
/* Ends what helpers do. */
void remote_mapping_free(struct remote_mapping *mapping);

/*
 * remote_mapping_serve - poll it if that is due
 *
 * Return: when to call again; UINT64_MAX: never
 */
uint64_t remote_mapping_serve(struct remote_mapping *mapping, uint64_t now_ns);

/* Is it known of all its pages whether they are present? */
bool remote_mapping_is_scanned(const struct remote_mapping *mapping);

/* Bytes that the process may still touch, if it touches the mapping in order. */
uint64_t remote_mapping_untouched(const struct remote_mapping *mapping);

#endif /* DAEMON_REMOTE_MAPPING_H */
