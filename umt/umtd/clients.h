/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clients of umtd: what each may have, and what it has.
 *
 * A client is a connection.  It has the rights of the user id that connected, as
 * the kernel reports it.  It can name only what it was given itself.
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

/* client_accept - the client of connection @fd; NULL: there are too many */
struct client *client_accept(int fd);

/* client_close - closes a connection that was not accepted */
void client_close(int fd);

/* client_gone - closes its subscribers and its connection */
void client_gone(struct client *client);

/*
 * client_serve - reads a request and answers it
 *
 * Never blocks.  Return: false if the client is gone, or has sent what libumt would
 * not send.
 */
bool client_serve(struct client *client);

/*
 * clients_detach_if_all_paused - detach the program once every open subscriber has paused
 * for a second; call it whenever something may have happened
 *
 * Return: after how many milliseconds to call it again at the latest; -1: no need to.
 */
int clients_detach_if_all_paused(void);

/* clients_use_program - does any client have a subscriber? */
bool clients_use_program(void);

#endif /* UMT_UMTD_CLIENTS_H */
