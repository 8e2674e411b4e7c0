/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Claim: who gets which chunk.  One cursor per range, no lock for the job.
 */
#ifndef KTASK_CORE_CLAIM_H
#define KTASK_CORE_CLAIM_H

#include "core/job.h"

/* kt_claim_home - the range that the @index-th worker on @node starts with */
unsigned kt_claim_home(const struct kt_job *job, int node, unsigned index);

/*
 * kt_claim - take the next chunk for @worker
 *
 * From the worker's range, or else from the nearest range with work left,
 * which becomes the worker's range.
 *
 * Return: false when nothing is left anywhere.
 */
bool kt_claim(struct kt_job *job, struct kt_worker *worker,
	      struct kt_chunk *chunk);

/* kt_claim_leave - add the worker's counts to the range it worked on */
void kt_claim_leave(struct kt_job *job, struct kt_worker *worker);

#endif /* KTASK_CORE_CLAIM_H */
