/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rules: what engine/host.h and engine/context.h promise, judged from outside.
 *
 * The simulated host tells here what it was asked and what it answered.  Each function
 * ends the run by sim_fail() where the engine did something else than it promises.
 */
#ifndef KTASK_SIM_RULES_H
#define KTASK_SIM_RULES_H

#include "sim/sim_host.h"

/* rules_begin - a job whose clocks were started */
void rules_begin(struct sim_job *job);

/* rules_answered - it may have @threads, until @until_ns if nothing changes */
void rules_answered(struct sim_job *job, unsigned threads, uint64_t until_ns);

/* rules_adjusted - the engine has acted on that; rules_settled(): in the beginning,
 * or while nobody waits for the job, without being told of all that follows */
void rules_adjusted(struct sim_job *job);
void rules_settled(struct sim_job *job);

/* rules_caller_begins - the caller begins its first chunk */
void rules_caller_begins(const struct sim_job *job);

/* rules_serves - the engine asked who serves @range; rules_permit(): it asks for the
 * permits of @item; rules_redealt(): its helper begins with a range of @node instead */
void rules_serves(struct sim_job *job, unsigned range, unsigned turn);
void rules_permit(const struct kt_item *item);
void rules_redealt(struct kt_item *item, int node);

/* rules_submitted - @item shall be submitted; rules_cancelled(): it was cancelled */
void rules_submitted(struct kt_item *item);
void rules_cancelled(struct kt_item *item);

/* rules_yields - @item's helper shall leave and has not yet */
void rules_yields(struct kt_item *item);

/* rules_waits - the caller of @item's job waits for its helper */
void rules_waits(const struct kt_item *item);

/* rules_stuck - the engine says that a helper gets no CPU */
void rules_stuck(const struct sim_job *job, uint64_t now_ns);

/* rules_threads - how many threads did a chunk of a job that is over */
unsigned rules_threads(const struct sim_job *job);

/* rules_compensate - keep @wanted compensating helpers; by the job's manager */
void rules_compensate(struct sim_job *job, unsigned wanted);

/* rules_reported - the client was told of progress */
void rules_reported(struct sim_job *job, bool last);

/* What workers tick by. */
bool rules_tick_helper(struct kt_worker *worker, uint64_t now_ns);
bool rules_tick_caller(struct kt_worker *worker, uint64_t now_ns);

#endif /* KTASK_SIM_RULES_H */
