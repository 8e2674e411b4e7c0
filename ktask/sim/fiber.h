/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fibers: stacks that one thread of the program switches between.
 */
#ifndef KTASK_SIM_FIBER_H
#define KTASK_SIM_FIBER_H

#include <stddef.h>

struct fiber;

/* fiber_main - the stack that the calling thread runs on, as a fiber */
struct fiber *fiber_main(void);

/*
 * fiber_make - a fiber that will call func(arg), which must not return
 *
 * Takes one that was given back, or a new one.  Exits the program if there is no memory.
 */
struct fiber *fiber_make(void (*func)(void *arg), void *arg);

/* fiber_put - give it back; it does not run, and never will again */
void fiber_put(struct fiber *fiber);

/* fiber_switch - leave @from, which runs, until somebody switches to it */
void fiber_switch(struct fiber *from, struct fiber *to);

#endif /* KTASK_SIM_FIBER_H */
