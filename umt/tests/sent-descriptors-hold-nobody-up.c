/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A client may send umtd a socket whose last close waits for hours: whether the
 * packet is read or thrown away with the connection, others are served.
 */
#include "support/umtd.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define HOURS_S 36000

static struct umtd umtd;

/* In a guest that of the machine is down. */
static void have_own_network(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		return;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &loopback))
		perror("# lo");
	close(fd);
}

/* Connected to itself, so to say: nobody will ever read what it has to send. */
static int slow_to_close(void)
{
	const struct linger linger = { 1, HOURS_S };
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *any = (struct sockaddr *)&name;
	socklen_t size = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	static char zeros[65536];

	if (listener < 0 || fd < 0 || bind(listener, any, size) ||
	    listen(listener, 1) || getsockname(listener, any, &size) ||
	    connect(fd, any, size))
		return -1;
	while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
		;
	ktest_check(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger,
				sizeof(linger)));
	return fd;
}

#define NO_NETWORK 77
#define NOT_SENT 78

/* @fd is then the packet's alone; the listener goes with this process. */
static int send_away(int connection, int fd)
{
	struct umt_ask ask = { .version = UMT_BROKER_VERSION, .op = 99 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(fd))];
	} control = { 0 };
	struct iovec piece = { &ask, sizeof(ask) };
	struct msghdr message = { .msg_iov = &piece,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(connection, &message, 0) < 0)
		return errno == EPERM ? NOT_SENT : 1;
	close(fd);
	return 0;
}

/* The listener stays with whoever called: without it there is no wait. */
static int sends_it(void *nonsense_first)
{
	int connection, fd;

	have_own_network();
	become_somebody(SOMEBODY);
	fd = slow_to_close();
	if (fd < 0)
		return NO_NETWORK;
	connection = broker_connect();
	ktest_check(connection >= 0);
	if (*(bool *)nonsense_first)
		ktest_check(send(connection, "", 1, 0) == 1);
	return send_away(connection, fd);
}

static void hold_up(bool nonsense_first)
{
	int said[2];
	pid_t sender;
	char code;

	/* Nothing is read before the packet has the only descriptor. */
	assert_int_equal(kill(umtd.pid, SIGSTOP), 0);
	assert_int_equal(pipe(said), 0);
	fflush(stdout);
	sender = fork();
	if (!sender) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		code = (char)sends_it(&nonsense_first);
		ktest_check(write(said[1], &code, 1) == 1);
		if (code == NOT_SENT)
			_exit(0);
		pause();
	}
	close(said[1]);
	assert_int_equal(read(said[0], &code, 1), 1);
	close(said[0]);
	assert_int_equal(kill(umtd.pid, SIGCONT), 0);
	if (code != NO_NETWORK)
		assert_int_equal(as_somebody(is_served, NULL), 0);
	kill(sender, SIGKILL);
	assert_int_equal(waitpid(sender, NULL, 0), sender);
	if (code == NO_NETWORK)
		ktest_skip("there is no loopback network");
	assert_true(!code || code == NOT_SENT);
}

static void begin_umtd(void)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(is_served, NULL), 0);
}

static void a_packet_that_is_read(void **state)
{
	begin_umtd();
	hold_up(false);
	umtd_end(&umtd);
}

static void a_packet_that_goes_with_its_connection(void **state)
{
	begin_umtd();
	hold_up(true);
	umtd_end(&umtd);
}

KTEST_MAIN(KTEST(a_packet_that_is_read),
	   KTEST(a_packet_that_goes_with_its_connection))
