/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clients of umtd: what each may have, and what it has.
 *
 * A client is a connection; its rights are those of the user id that the
 * kernel says has connected.  It can name only what it was given itself.
 */
#ifndef UMT_UMTD_CLIENTS_H
#define UMT_UMTD_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/broker.h"

#define CLIENTS_MAX 512

/* For each user id but root's, besides what broker.h says: */
#define CLIENTS_EACH 64

struct client {
	int fd; /* -1: free */
	uid_t uid; /* who pays: subuid_owner.h */
};

/* client_accept - a place for @fd, or NULL when there is or shall be none */
struct client *client_accept(int fd);

/* client_close - closes the descriptor of one that has no place */
void client_close(int fd);

/* client_gone - takes back all that it had, and closes its descriptor */
void client_gone(struct client *client);

/*
 * client_serve - reads a question and answers it
 *
 * Never blocks.  Return: false when the client is gone or has said what none
 * of ours would say.
 */
bool client_serve(struct client *client);

/* clients_use_program - is the program needed? */
bool clients_use_program(void);

#endif /* UMT_UMTD_CLIENTS_H */
