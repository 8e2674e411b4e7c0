/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What spares.c and spares_seen.c share: the spares of a job, and what its
 * watcher sees of its threads.
 */
#ifndef KTASK_LIB_SPARES_SEEN_H
#define KTASK_LIB_SPARES_SEEN_H

#include "lib/job.h"
#include "lib/sight.h"
#include "lib/spares_count.h"

struct spares {
	struct seat watch;
	struct user_job *job;
	/* As many as client and administrator allow. */
	struct kt_helpers helpers;
	uint32_t stop; /* futex: the watcher shall leave */
	int bell; /* the same as a descriptor, where there is a monitor; -1 */
	struct spares_count count;
	uint32_t alone; /* the caller has one CPU only: so has the job */
	struct sight_last *last; /* of the caller, the helpers and the spares */
	uint64_t done, done_ns; /* units, and when they were done at last */
	unsigned extra; /* of these threads stand */
	/* Where they may run.  The caller fills in the one that is not in use. */
	struct kt_cpus cpus[2];
	uint32_t fresh,
		used; /* the index that the watcher shall use, and does */
	uint32_t places, used_places; /* ctx.placement of these */
	uint32_t caller; /* its thread */
};

/* seen_working - by the watcher: threads that are in the job, and run */
struct sight seen_working(const struct spares *spares);

/*
 * seen_standing - by the watcher: threads whose chunks may wait for others
 * @units: that the job has done
 * @running: threads of it that run
 *
 * As many as had been blocked in one chunk for long when nothing was done any
 * more and nobody ran, and still are.
 */
unsigned seen_standing(struct spares *spares, uint64_t units, unsigned running,
		       uint64_t now_ns);

#endif /* KTASK_LIB_SPARES_SEEN_H */
