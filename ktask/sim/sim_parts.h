/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of the simulated host share: sim_host.c (clocks and the operations of
 * engine/host.h), sim_helpers.c and sim_jobs.c.
 */
#ifndef KTASK_SIM_PARTS_H
#define KTASK_SIM_PARTS_H

#include "sim/sim_host.h"

/* ---- sim_host.c ---- */

/* How often sim_host_moved() was called. */
uint32_t host_moves(void);

/* ---- sim_helpers.c ---- */

/* Nobody has any of the @permits. */
void helpers_reset(unsigned permits);
/* Give back the permit of @item, if it has one. */
void helpers_put_permit(struct kt_item *item);

/* ---- sim_jobs.c ---- */

/* No thread is in a job. */
void jobs_reset(void);
/* The calling thread begins to work for @job, as its caller if @item is NULL. */
void jobs_enter(struct sim_job *job, struct kt_item *item);
/* It no longer does. */
void jobs_leave(void);
/* The innermost job that the calling thread works for, or NULL. */
struct sim_job *jobs_current(void);
/* Have @nr items, or as many as the job has memory for. */
void jobs_make_items(struct sim_job *job, unsigned nr);

#endif /* KTASK_SIM_PARTS_H */
