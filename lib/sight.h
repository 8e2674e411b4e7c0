/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sight: how many of some threads of this process run, or could.
 */
#ifndef KTASK_LIB_SIGHT_H
#define KTASK_LIB_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct sight {
	unsigned working; /* threads of the job that are in it */
	unsigned running;
};

/*
 * sight_add - a thread; 0: there is none
 * @closely: read from /proc whether it runs; some 6 us
 */
void sight_add(struct sight *sight, uint32_t tid, bool closely);

#endif /* KTASK_LIB_SIGHT_H */
