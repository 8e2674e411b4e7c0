/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How ranks talk to each other: over MPI, or not at all (comm_none.c, where
 * MPI is not installed or the program was not started as one of several).
 *
 * Owns a thread that moves the messages: Open MPI does so only inside its
 * calls, and waits there by turning in circles.  Whoever waits here sleeps, so
 * that UMT sees it.  Behaves badly where latency below some 50 us matters.
 *
 * Any thread may call; an error of MPI ends all ranks with its message.
 */
#ifndef APPS_COMM_H
#define APPS_COMM_H

#include <stddef.h>
#include <stdint.h>

/**
 * comm_open - join the other ranks
 *
 * Return: 0; -EPROTONOSUPPORT: several were started, but this program was built without
 * MPI, or with another one than theirs; -ENOTSUP: threads.
 */
int comm_open(void);

/** comm_close - once all that was sent has been received */
void comm_close(void);

/* comm_started - ranks that were started, at least so many, as the launcher
 * tells it; 0: none told of any */
int comm_started(void);

int comm_rank(void);
int comm_ranks(void);

/** comm_send - begin to send a copy of @buf to rank @to */
void comm_send(const void *buf, size_t bytes, int to, int tag);

/** comm_recv - sleep until @buf holds what rank @from sent with @tag */
void comm_recv(void *buf, size_t bytes, int from, int tag);

/** comm_recv_then - the same, but go on: done(arg) is called at the end */
void comm_recv_then(void *buf, size_t bytes, int from, int tag,
		    void (*done)(void *arg), void *arg);

/** comm_barrier - sleep until every rank is here; one thread of each */
void comm_barrier(void);

/** comm_abort - end all ranks with exit status 1 */
void comm_abort(void) __attribute__((noreturn));

#endif /* APPS_COMM_H */
