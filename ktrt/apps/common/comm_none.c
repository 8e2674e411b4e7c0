/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One rank that is alone: built where there is no MPI.  Nothing is ever sent;
 * being started as one of several ranks is an error.
 */
#include <errno.h>
#include <stdlib.h>

#include "comm.h"

int comm_open(void)
{
	return comm_started() > 1 ? -EPROTONOSUPPORT : 0;
}

void comm_close(void)
{
}

int comm_rank(void)
{
	return 0;
}

int comm_ranks(void)
{
	return 1;
}

void comm_send(const void *buf, size_t bytes, int to, int tag)
{
	abort();
}

void comm_recv(void *buf, size_t bytes, int from, int tag)
{
	abort();
}

void comm_recv_then(void *buf, size_t bytes, int from, int tag,
		    void (*done)(void *arg), void *arg)
{
	abort();
}

void comm_barrier(void)
{
}

void comm_abort(void)
{
	exit(1);
}
