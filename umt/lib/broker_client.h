/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libumt's side of umtd.  Each call takes a connection and, when it fails in a
 * way that leaves the connection useless, closes it and sets it to -1.
 */
#ifndef UMT_LIB_BROKER_CLIENT_H
#define UMT_LIB_BROKER_CLIENT_H

#include "lib/broker.h"

/* broker_path - where umtd is looked for; NULL: nowhere */
const char *broker_path(void);

/* broker_connect - a connection, or a negative errno */
int broker_connect(void);

/*
 * broker_ask - one question
 * @fds: receives @nr_fds descriptors at most; the caller's; others are closed
 *
 * Return: how many descriptors came, or a negative errno.
 */
int broker_ask(int *connection, const struct umt_ask *ask,
	       struct umt_answer *answer, int *fds, int nr_fds);

#endif /* UMT_LIB_BROKER_CLIENT_H */
