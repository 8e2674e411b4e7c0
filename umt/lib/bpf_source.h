/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program in the kernel, as libumt holds it: its own, or that of a umtd, with a
 * connection to it.
 *
 * Locking: subscriber.h.
 *
 *	S: under subscriber_lock()
 *	F: the same, and set before the first subscriber of the source is told its
 *	   own: constant while there are threads that use one
 */
#ifndef UMT_LIB_BPF_SOURCE_H
#define UMT_LIB_BPF_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf_program.h"
#include "broker_client.h"

struct source {
	bool own; /* loaded here; constant */
	int connection; /* to umtd; -1: it has ended, or own; S */
	ino_t inode; /* of the connection; constant */
	int control_fd; /* F */
	int links[UMT_BROKER_FDS_MAX]; /* S */
	uint32_t link_ids[UMT_BROKER_FDS_MAX]; /* S */
	int nr_links; /* 0 while all its subscribers have paused; S */
	unsigned int nr_subscribers; /* S */
	unsigned int nr_paused; /* of these; S */
};

/* The following functions are for sources of a umtd. */

/* source_connect - 0 or a negative errno */
int source_connect(struct source **made);

/* source_free - close the connection and all descriptors.  Call it with the last
 * subscriber, because the links keep the program attached. */
void source_free(struct source *source);

/* source_open - a subscriber with @flags and a ring of @ring_bytes; 0 or a negative
 * errno */
int source_open(struct source *source, struct program_subscriber *made, int *nr,
		unsigned int flags, size_t ring_bytes);
void source_close(struct source *source, unsigned int index);

/* source_doorbell - the descriptor of the ring of one core, or a negative errno */
int source_doorbell(struct source *source, unsigned int index, int cpu);

/*
 * source_pause - tell umtd that a subscriber has paused (@on), or was resumed
 *
 * Return: 0; -ENOTSUP: that umtd cannot; -EBADF: the program has closed descriptors
 * of the source; or another negative errno.
 */
int source_pause(struct source *source, unsigned int index, bool on);

/* source_drop_links - close the links if all its subscribers have paused */
void source_drop_links(struct source *source);

#endif /* UMT_LIB_BPF_SOURCE_H */
