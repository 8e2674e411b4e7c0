/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that opens a user may wait long for umtd, here one that never
 * answers.  Threads of users that there are already come, block, go on and go
 * meanwhile, and their events are read.
 */
#include "support/users.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "umt/broker.h"

/* Somebody else may have the machine for as long as the other would wait. */
#define TRIES 5

static char folder[32];
static int listener, connection, is_open;

static void listen_as_umtd(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	strcpy(folder, "/tmp/umtd-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", folder);
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
	rmdir(folder);
	unsetenv("UMT_SOCKET");
}

static void *opens(void *unused)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF };
	struct umt *user = NULL;

	if (umt_open(&user, &options))
		user = NULL;
	__atomic_store_n(&is_open, 1, __ATOMIC_SEQ_CST);
	umt_close(user);
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

/* All that a thread does besides opening and closing users. */
static void *uses(void *user)
{
	struct umt_event event;

	ktest_check(umt_thread_add(user) == 0);
	umt_block_begin();
	umt_block_end();
	while (umt_next(user, &event) == 1)
		;
	ktest_check(umt_thread_remove(user) == 0);
	/* It is taken from the user as it ends. */
	ktest_check(umt_thread_add(user) == 0);
	return NULL;
}

static bool is_held_up(struct umt *user)
{
	pthread_t opener, worker;
	bool held_up;

	is_open = 0;
	connection = -1;
	listen_as_umtd();
	pthread_create(&opener, NULL, opens, NULL);
	if (!is_asked()) {
		pthread_join(opener, NULL);
		hang_up();
		ktest_skip("built without eBPF");
	}
	pthread_create(&worker, NULL, uses, user);
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
	struct umt *user;
	int tries = 1;

	setenv("UMT_SOCKET", "", 1);
	user = user_of(backend, 0);
	while (is_held_up(user))
		assert_true(tries++ < TRIES);
	umt_close(user);
}

ON_EACH_BACKEND(nobody_waits)

KTEST_MAIN(KTEST_EACH(nobody_waits))
