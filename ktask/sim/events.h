/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Events of the simulated machine, in the order of time: calls and timeouts.
 */
#ifndef KTASK_SIM_EVENTS_H
#define KTASK_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct event {
	uint64_t ns;
	void (*func)(void *arg); /* NULL: a timeout of thread arg */
	void *arg;
	uint32_t timer; /* which timeout of the thread */
	uint64_t
		order; /* of events at one time the one pushed first comes first */
};

void events_reset(void);
void events_push(const struct event *event);

/* events_next_ns - of the first one; UINT64_MAX: there is none */
uint64_t events_next_ns(void);
struct event events_pop(void);

#endif /* KTASK_SIM_EVENTS_H */
