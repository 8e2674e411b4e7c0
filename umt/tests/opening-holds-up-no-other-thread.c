/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that opens a subscriber may wait long for umtd, here one that never
 * answers.  Threads of subscribers that there are already come, block, go on
 * and go meanwhile, and their events are read.
 */
#include "support/subscribers.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/broker.h"

/* Somebody else may have the machine for as long as the other would wait. */
#define TRIES 5

static char directory[32];
static int listener, connection, is_open;

static void listen_as_umtd(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	strcpy(directory, "/tmp/umtd-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", directory);
	setenv("UMT_SOCKET", name.sun_path, 1);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (void *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 1), 0);
}

static void hang_up(void)
{
	close(listener);
	close(connection);
	unlink(getenv("UMT_SOCKET"));
	rmdir(directory);
	unsetenv("UMT_SOCKET");
}

static void *open_subscriber(void *unused)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF };
	struct umt *subscriber = NULL;

	if (umt_open(&subscriber, &options))
		subscriber = NULL;
	__atomic_store_n(&is_open, 1, __ATOMIC_SEQ_CST);
	umt_close(subscriber);
	return NULL;
}

static bool has_opened(void)
{
	return __atomic_load_n(&is_open, __ATOMIC_SEQ_CST);
}

/* Until it has asked; false where it asks nobody. */
static bool is_asked(void)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };
	struct umt_ask ask;

	while (poll(&fd, 1, 10) != 1)
		if (has_opened())
			return false;
	connection = accept(listener, NULL, NULL);
	assert_true(connection >= 0);
	assert_int_equal(recv(connection, &ask, sizeof(ask), 0), sizeof(ask));
	return true;
}

/* All that a thread does besides opening and closing subscribers. */
static void *use_subscriber(void *subscriber)
{
	struct umt_event event;

	ktest_check(umt_thread_add(subscriber) == 0);
	umt_block_begin();
	umt_block_end();
	while (umt_next(subscriber, &event) == 1)
		;
	ktest_check(umt_thread_remove(subscriber) == 0);
	/* It is taken from the subscriber as it ends. */
	ktest_check(umt_thread_add(subscriber) == 0);
	return NULL;
}

static bool is_held_up(struct umt *subscriber)
{
	pthread_t opener, worker;
	bool held_up;

	is_open = 0;
	connection = -1;
	listen_as_umtd();
	pthread_create(&opener, NULL, open_subscriber, NULL);
	if (!is_asked()) {
		pthread_join(opener, NULL);
		hang_up();
		ktest_skip("built without eBPF");
	}
	pthread_create(&worker, NULL, use_subscriber, subscriber);
	pthread_join(worker, NULL);
	/* Who waited for it goes on no later than it. */
	nap_us(10000);
	held_up = has_opened();
	hang_up();
	pthread_join(opener, NULL);
	return held_up;
}

static void nobody_waits(unsigned backend)
{
	struct umt *subscriber;
	int tries = 1;

	setenv("UMT_SOCKET", "", 1);
	subscriber = subscriber_of(backend, 0);
	while (is_held_up(subscriber))
		assert_true(tries++ < TRIES);
	umt_close(subscriber);
}

ON_EACH_BACKEND(nobody_waits)

KTEST_MAIN(KTEST_EACH(nobody_waits))
