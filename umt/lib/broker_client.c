/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See broker_client.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker_client.h"

/* umtd may have to load the program first, perhaps on a busy machine. */
#define PATIENCE_S 10

const char *broker_path(void)
{
	const char *path = secure_getenv("UMT_SOCKET");

	if (!path)
		return UMT_BROKER_PATH;
	return *path ? path : NULL;
}

int broker_connect(void)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const char *path = broker_path();
	int fd, error;

	if (!path || strlen(path) >= sizeof(name.sun_path))
		return -ENOENT;
	strcpy(name.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&name, sizeof(name)))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static void take_fds(const struct msghdr *message, int *fds, int capacity,
		     int *nr)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	size_t i, came;
	int fd;

	if (!header || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS)
		return;
	came = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (i = 0; i < came; i++) {
		memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
		if (*nr < capacity)
			fds[(*nr)++] = fd;
		else
			close(fd);
	}
}

static int receive_answer(int connection, struct umt_answer *answer, int *fds,
			  int capacity)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(UMT_BROKER_FDS_MAX * sizeof(int))];
	} control;
	struct iovec piece = { answer, sizeof(*answer) };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t bytes;
	int nr = 0;

	do {
		bytes = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
	} while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	take_fds(&message, fds, capacity, &nr);
	if (bytes == sizeof(*answer) && answer->version == UMT_BROKER_VERSION &&
	    !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return nr;
	while (nr)
		close(fds[--nr]);
	return bytes ? -EPROTO : -ECONNRESET;
}

int broker_ask(int *connection, const struct umt_ask *ask,
	       struct umt_answer *answer, int *fds, int nr_fds)
{
	ssize_t bytes;
	int nr;

	if (*connection < 0)
		return -ENOTCONN;
	do {
		bytes = send(*connection, ask, sizeof(*ask), MSG_NOSIGNAL);
	} while (bytes < 0 && errno == EINTR);
	nr = bytes < 0 ? -errno
		       : receive_answer(*connection, answer, fds, nr_fds);
	if (nr >= 0)
		return answer->error ? answer->error : nr;
	close(*connection);
	*connection = -1;
	return nr;
}
