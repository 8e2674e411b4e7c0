/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A client that closes subscribers but keeps what it was handed, or whose
 * threads keep a closed subscriber in use, gets no more than one that closes
 * nothing.
 */
#include "support/umtd.h"

#include <pthread.h>
#include <semaphore.h>

#include "ebpf/shared.h"

#define BIG (4u << 20)
#define BIG_MAX 4 /* in 16 MiB */
#define MANY 12
#define SUBSCRIBERS_MAX 32
#define CORES_MAX 8 /* asking takes 15 ms, and all may be asked for */

static struct umtd umtd;

static const struct umt_ask opening = { .version = UMT_BROKER_VERSION,
					.op = UMT_BROKER_OPEN,
					.ring_bytes = BIG };

struct client {
	int connection;
	int fds[MANY * UMT_BROKER_FDS_MAX];
	int nr;
	int nr_cores;
};

static void begin_client(struct client *client)
{
	become_somebody(SOMEBODY);
	*client = (struct client){ .connection = broker_connect() };
	ktest_check(client->connection >= 0);
}

/* The number of a subscriber whose descriptors are kept, or -errno. */
static int open_subscriber(struct client *client)
{
	struct umt_answer answer;
	int nr = broker_ask(&client->connection, &opening, &answer,
			    client->fds + client->nr, UMT_BROKER_FDS_MAX);

	if (nr < 0)
		return nr;
	client->nr += nr;
	client->nr_cores = (int)answer.nr_cores;
	return (int)answer.subscriber;
}

static void close_subscriber(struct client *client, int subscriber)
{
	struct umt_ask ask = { .version = UMT_BROKER_VERSION,
			       .op = UMT_BROKER_CLOSE,
			       .subscriber = (uint32_t)subscriber };
	struct umt_answer answer;

	ktest_check(!broker_ask(&client->connection, &ask, &answer, NULL, 0));
}

static void close_all(struct client *client)
{
	while (client->nr)
		close(client->fds[--client->nr]);
}

/* How many subscribers it can have had, all closed and kept. */
static int keep_closed(struct client *client)
{
	int subscriber, nr;

	for (nr = 0; nr < MANY; nr++) {
		subscriber = open_subscriber(client);
		if (subscriber < 0) {
			ktest_check(subscriber == -EUSERS);
			break;
		}
		close_subscriber(client, subscriber);
	}
	return nr;
}

static int keeps_rings(void *unused)
{
	struct client client;
	int i;

	begin_client(&client);
	ktest_check(keep_closed(&client) >= BIG_MAX);
	ktest_check(keep_closed(&client) == 0);
	/* Also as another client; and who comes and goes may for ever. */
	close(client.connection);
	client.connection = broker_connect();
	ktest_check(open_subscriber(&client) == -EUSERS);
	close_all(&client);
	for (i = 0; i < 2 * MANY; i++) {
		int subscriber = open_subscriber(&client);

		ktest_check(subscriber >= 0);
		close_subscriber(&client, subscriber);
		close_all(&client);
	}
	return 0;
}

static int keeps_doorbells(void *unused)
{
	struct umt_ask ask = { .version = UMT_BROKER_VERSION,
			       .op = UMT_BROKER_DOORBELL };
	struct umt_answer answer;
	struct client client;
	int nr, fd, said = 0, subscriber;

	begin_client(&client);
	subscriber = open_subscriber(&client);
	ktest_check(subscriber >= 0);
	if (client.nr_cores > CORES_MAX)
		return 0;
	ask.subscriber = (uint32_t)subscriber;
	for (nr = -1; nr <= SUBSCRIBERS_MAX * client.nr_cores && said >= 0;
	     nr++)
		said = broker_ask(&client.connection, &ask, &answer, &fd, 1);
	ktest_check(said == -EUSERS);
	ktest_check(nr == SUBSCRIBERS_MAX * client.nr_cores);
	return 0;
}

static sem_t added;

static void *sleeps_as(void *subscriber)
{
	ktest_check(umt_thread_add(subscriber) == 0);
	ktest_check(sem_post(&added) == 0);
	pause();
	return NULL;
}

/* Threads that never run again name a subscriber that is closed. */
static int keeps_subscribers(void *unused)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF,
				       .ring_bytes = BIG };
	struct umt *subscriber;
	pthread_t thread;
	int i, error = 0;

	become_somebody(SOMEBODY);
	ktest_check(sem_init(&added, 0, 0) == 0);
	for (i = 0; i < MANY && !error; i++) {
		error = umt_open(&subscriber, &options);
		if (error)
			break;
		ktest_check(
			!pthread_create(&thread, NULL, sleeps_as, subscriber));
		while (sem_wait(&added))
			;
		ktest_check(holds_soon(ready_of(subscriber) == 0));
		umt_close(subscriber);
	}
	ktest_check(i == BIG_MAX);
	ktest_check(error == -EUSERS);
	return 0;
}

static void others_have_what_they_had(int (*func)(void *arg))
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(is_served, NULL), 0);
	assert_int_equal(as_somebody(func, NULL), 0);
	assert_int_equal(as_somebody(is_served, NULL), 0);
	umtd_end(&umtd);
}

static void rings_that_are_kept(void **state)
{
	others_have_what_they_had(keeps_rings);
}

static void doorbells_that_are_kept(void **state)
{
	others_have_what_they_had(keeps_doorbells);
}

static void subscribers_that_linger(void **state)
{
	others_have_what_they_had(keeps_subscribers);
}

KTEST_MAIN(KTEST(rings_that_are_kept), KTEST(doorbells_that_are_kept),
	   KTEST(subscribers_that_linger))
