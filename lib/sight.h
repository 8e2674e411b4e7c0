/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sight: how many of some threads of this process run, or could, and which
 * have stood in one chunk for long.
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

/* What was seen last of one place for a thread. */
struct sight_last {
	uint32_t tid;
	uint64_t units;
	uint64_t since_ns; /* it is there and has done no more */
};

/*
 * sight_stands - is it in the same chunk since @long_ns or longer?
 * @tid: 0: nobody is there
 */
bool sight_stands(struct sight_last *last, uint32_t tid, uint64_t units,
		  uint64_t now_ns, uint64_t long_ns);

#endif /* KTASK_LIB_SIGHT_H */
