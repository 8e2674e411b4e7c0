/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A part of a thread's work that no signal handler interrupts and no cancellation ends,
 * because other threads wait for its end, and a handler may map and unmap memory.
 */
#ifndef KTASK_PRELOAD_UNINTERRUPTED_H
#define KTASK_PRELOAD_UNINTERRUPTED_H

#include <pthread.h>
#include <signal.h>

/* What was there before. */
struct uninterrupted {
	sigset_t signals;
	int cancel_state;
};

static inline void uninterrupted_begin(struct uninterrupted *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel_state);
}

static inline void uninterrupted_end(const struct uninterrupted *before)
{
	pthread_setcancelstate(before->cancel_state, NULL);
	pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}

#endif /* KTASK_PRELOAD_UNINTERRUPTED_H */
