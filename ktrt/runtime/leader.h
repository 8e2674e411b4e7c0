/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The leader (leader.c), and UMT as it loads, pauses and joins it (umt_load.c).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_LEADER_H
#define RUNTIME_LEADER_H

#include "runtime_state.h"

/* ---- leader.c ---- */

int leader_start(void);
void leader_stop(void);
/* Wake the leader, because a thread is requested or because it has to stop. */
void leader_kick(void);
/* After a core was marked as not idle: the leader either sees that before it
 * sleeps for long, or is seen here. */
static inline void rouse_leader(void)
{
	if (unlikely(at_load_seq(&rt.leader_sleeps)))
		leader_kick();
}
/* Lead until a core wants the leader as a worker (@w), or rt.stop. */
void leader_lead(struct worker *w);

#ifdef RANK_ASSERTS
extern __thread bool leads_now;
#endif

/* The calling thread must be the leader, C of the legend. */
static inline void leader_assert(void)
{
#ifdef RANK_ASSERTS
	rank_assert(leads_now);
#endif
}

/* ---- umt_load.c ---- */

/* Open UMT: here or by another thread, as the options say. */
void umt_load_start(void);
void umt_load_stop(void);
/* By the leader, now and then.  Join the loader once it has ended.  Without this, exit()
 * without ktrt_stop() leaves an unjoined thread. */
void umt_load_join_ended(void);
/* By the leader, when all workers have slept for some time: pause UMT, so that it costs other
 * programs nothing.  Return: false if that is not possible now. */
bool umt_rest(void);
/* By the leader: a worker runs again, so resume UMT. */
void umt_rest_ends(void);

#endif /* RUNTIME_LEADER_H */
