/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See sent_fds.h.  A signal ends the wait in close.  It stays pending until the
 * kernel has closed all descriptors of the packet, which precedes the handler.
 *
 * Behaves badly: before Linux 6.16, a file system or device whose last close
 * waits and ignores signals holds umtd up.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "sent_fds.h"

/* The C library may not know it yet.  Other architectures number it differently. */
#if !defined(SO_PASSRIGHTS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PASSRIGHTS 83
#endif

#define MOMENT_US 20000

static void on_alarm(int number)
{
}

void sent_fds_refuse(int fd)
{
	struct sigaction action = { .sa_handler = on_alarm };
#ifdef SO_PASSRIGHTS
	int none = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
#endif
	sigaction(SIGALRM, &action, NULL);
}

static void set_alarm(suseconds_t us)
{
	/* Periodic: the first signal may come before the wait begins. */
	const struct itimerval alarm = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &alarm, NULL);
}

void sent_fds_begin(void)
{
	set_alarm(MOMENT_US);
}

void sent_fds_end(void)
{
	set_alarm(0);
}
