/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Thread samples: how many of some threads of this process run, or could, and
 * which of them are stalled in one chunk.
 */
#ifndef KTASK_USER_THREAD_SAMPLE_H
#define KTASK_USER_THREAD_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct thread_sample {
	unsigned working; /* threads of the job that are in it */
	unsigned running;
};

/*
 * thread_sample_add - count thread @tid; 0: there is none
 * @closely: read from /proc whether it runs; some 6 us
 */
void thread_sample_add(struct thread_sample *seen, uint32_t tid, bool closely);

/* How far a thread was when it was last sampled. */
struct thread_progress {
	uint32_t tid;
	uint64_t units;
	uint64_t since_ns; /* when it was first seen at @units */
};

/*
 * thread_is_stalled - has it been in one chunk for @long_ns or longer?
 * @tid: 0: there is no thread
 */
bool thread_is_stalled(struct thread_progress *last, uint32_t tid,
		       uint64_t units, uint64_t now_ns, uint64_t long_ns);

#endif /* KTASK_USER_THREAD_SAMPLE_H */
