/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Messages over MPI.  What was begun and is not done yet hangs on a list that the mover
 * looks through; it sleeps when the list is empty.
 *
 * Locking: every call of MPI is made under one lock, so that MPI_THREAD_SERIALIZED is
 * enough.  It protects the list, too (L).  Callbacks run without it.  A waiter has a lock
 * of its own, which is taken alone.
 */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "comm.h"

/* How long the mover sleeps between polls: short against a message over a
 * network, long against a poll (1 to 2 us). */
#define POLL_NS 20000

struct message {
	struct message *next;
	MPI_Request request;
	void (*done)(void *arg);
	void *arg;
	char copy[]; /* of what is sent */
};

static struct {
	bool open;
	int rank, ranks;
	pthread_t mover;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* L */
	struct message *pending; /* L */
	bool stop; /* L */
} comm_state = { .ranks = 1,
		 .lock = PTHREAD_MUTEX_INITIALIZER,
		 .changed = PTHREAD_COND_INITIALIZER };

/* ---- the mover ---- */

/* Take what is done off the list; its callbacks run without the lock. */
static struct message *take_done(void)
{
	struct message **at = &comm_state.pending, *done = NULL;

	while (*at) {
		struct message *message = *at;
		int flag;

		MPI_Test(&message->request, &flag, MPI_STATUS_IGNORE);
		if (!flag) {
			at = &message->next;
			continue;
		}
		*at = message->next;
		message->next = done;
		done = message;
	}
	return done;
}

static void end_all(struct message *done)
{
	while (done) {
		struct message *message = done;

		done = message->next;
		if (message->done)
			message->done(message->arg);
		free(message);
	}
}

static void *move_messages(void *arg)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
	pthread_mutex_lock(&comm_state.lock);
	for (;;) {
		struct message *done;

		while (!comm_state.pending && !comm_state.stop)
			pthread_cond_wait(&comm_state.changed,
					  &comm_state.lock);
		if (!comm_state.pending)
			break;
		done = take_done();
		pthread_mutex_unlock(&comm_state.lock);
		if (done)
			end_all(done);
		else
			nanosleep(&pause, NULL);
		pthread_mutex_lock(&comm_state.lock);
	}
	pthread_mutex_unlock(&comm_state.lock);
	return NULL;
}

/* Called with the lock held, which it releases. */
static void add_and_unlock(struct message *message)
{
	/* Ordered as begun, so that waiting for the first is cheap. */
	struct message **at = &comm_state.pending;

	while (*at)
		at = &(*at)->next;
	message->next = NULL;
	*at = message;
	pthread_cond_signal(&comm_state.changed);
	pthread_mutex_unlock(&comm_state.lock);
}

static struct message *new_message(size_t copy_bytes)
{
	struct message *message = malloc(sizeof(*message) + copy_bytes);

	if (!message || copy_bytes > INT_MAX)
		comm_abort();
	message->done = NULL;
	return message;
}

/* ---- messages ---- */

void comm_send(const void *buf, size_t bytes, int to, int tag)
{
	struct message *message = new_message(bytes);

	memcpy(message->copy, buf, bytes);
	pthread_mutex_lock(&comm_state.lock);
	MPI_Isend(message->copy, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD,
		  &message->request);
	add_and_unlock(message);
}

void comm_recv_then(void *buf, size_t bytes, int from, int tag,
		    void (*done)(void *arg), void *arg)
{
	struct message *message = new_message(0);

	message->done = done;
	message->arg = arg;
	pthread_mutex_lock(&comm_state.lock);
	MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD,
		  &message->request);
	add_and_unlock(message);
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool done;
};

static void wake_waiter(void *arg)
{
	struct waiter *waiter = arg;

	/* Under the lock to the end: the waiter's frame is gone after it. */
	pthread_mutex_lock(&waiter->lock);
	waiter->done = true;
	pthread_cond_signal(&waiter->wake);
	pthread_mutex_unlock(&waiter->lock);
}

static void wait_for(struct waiter *waiter)
{
	pthread_mutex_lock(&waiter->lock);
	while (!waiter->done)
		pthread_cond_wait(&waiter->wake, &waiter->lock);
	pthread_mutex_unlock(&waiter->lock);
}

void comm_recv(void *buf, size_t bytes, int from, int tag)
{
	struct waiter waiter = { PTHREAD_MUTEX_INITIALIZER,
				 PTHREAD_COND_INITIALIZER, false };

	comm_recv_then(buf, bytes, from, tag, wake_waiter, &waiter);
	wait_for(&waiter);
}

void comm_barrier(void)
{
	struct waiter waiter = { PTHREAD_MUTEX_INITIALIZER,
				 PTHREAD_COND_INITIALIZER, false };
	struct message *message;

	if (comm_state.ranks == 1)
		return;
	message = new_message(0);
	message->done = wake_waiter;
	message->arg = &waiter;
	pthread_mutex_lock(&comm_state.lock);
	MPI_Ibarrier(MPI_COMM_WORLD, &message->request);
	add_and_unlock(message);
	wait_for(&waiter);
}

/* ---- life cycle ---- */

int comm_open(void)
{
	/* Without mpirun there is one rank, and MPI_Init() costs 0.1 s. */
	int started = comm_started(), provided;

	if (!started)
		return 0;
	MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
	if (provided < MPI_THREAD_SERIALIZED)
		return -ENOTSUP;
	MPI_Comm_rank(MPI_COMM_WORLD, &comm_state.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &comm_state.ranks);
	/* The launcher belongs to another MPI: each rank would seem to be the only one. */
	if (comm_state.ranks < started) {
		MPI_Finalize();
		return -EPROTONOSUPPORT;
	}
	comm_state.open = true;
	return -pthread_create(&comm_state.mover, NULL, move_messages, NULL);
}

void comm_close(void)
{
	if (!comm_state.open)
		return;
	pthread_mutex_lock(&comm_state.lock);
	comm_state.stop = true;
	pthread_cond_signal(&comm_state.changed);
	pthread_mutex_unlock(&comm_state.lock);
	pthread_join(comm_state.mover, NULL);
	MPI_Finalize();
	comm_state.open = false;
}

int comm_rank(void)
{
	return comm_state.rank;
}

int comm_ranks(void)
{
	return comm_state.ranks;
}

void comm_abort(void)
{
	if (comm_state.open)
		MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}
