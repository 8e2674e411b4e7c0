/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libumt's side of the connection to umtd.  A call that fails and leaves the connection
 * unusable closes it and sets it to -1.
 */
#ifndef UMT_LIB_BROKER_CLIENT_H
#define UMT_LIB_BROKER_CLIENT_H

#include "lib/broker.h"

/* broker_path - where umtd is looked for; NULL: nowhere */
const char *broker_path(void);

/* broker_connect - a connection, or a negative errno */
int broker_connect(void);

/*
 * broker_ask - send a request and wait for the answer
 * @fds: receives at most @nr_fds descriptors, which the caller owns; others are closed
 *
 * Return: how many descriptors came, or a negative errno.
 */
int broker_ask(int *connection, const struct umt_ask *ask,
	       struct umt_answer *answer, int *fds, int nr_fds);

#endif /* UMT_LIB_BROKER_CLIENT_H */
