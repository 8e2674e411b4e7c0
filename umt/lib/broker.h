/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The protocol between libumt and umtd: packets on a SOCK_SEQPACKET socket, one request
 * and one answer at a time.  So no message is ever incomplete.
 *
 * A client names no process and no thread.  The descriptors that it gets let a thread
 * add itself, and then only threads of the same process.  They also keep the program
 * attached, so that subscribers survive the end of umtd, unless all of a process have
 * paused.
 */
#ifndef UMT_BROKER_H
#define UMT_BROKER_H

#include <linux/types.h>

#define UMT_BROKER_PATH "/run/umtd.sock"
#define UMT_BROKER_VERSION 1
/* UMT_INHERIT is refused, because a thread may execute a program with more rights. */
#define UMT_BROKER_FLAGS UMT_TRACE
#define UMT_BROKER_RING_MAX (4u << 20)
#define UMT_BROKER_FDS_MAX 12
/* For each user id but root's: subscribers, and what they have for events. */
#define UMT_BROKER_SUBSCRIBERS_EACH 32
#define UMT_BROKER_RINGS_EACH (16u << 20)

enum umt_broker_op {
	UMT_BROKER_OPEN, /* a subscriber; descriptors: enum umt_broker_fd */
	UMT_BROKER_CLOSE, /* @subscriber */
	UMT_BROKER_DOORBELL, /* the descriptor of core @cpu of @subscriber */
	/* @subscriber needs no events.  While that holds for all, umtd keeps the program
	 * detached; links that clients hold keep it attached.  A umtd that does not know
	 * this request answers -EINVAL. */
	UMT_BROKER_PAUSE,
	UMT_BROKER_RESUME, /* it needs them again; descriptors: links */
};

/* The descriptors in the answer to UMT_BROKER_OPEN; after these come links. */
enum umt_broker_fd {
	UMT_FD_CONTROL,
	UMT_FD_TABLE,
	UMT_FD_RING,
	UMT_FD_LINKS,
};

struct umt_ask {
	__u32 version;
	__u32 op;
	__u32 subscriber;
	__u32 cpu;
	__u32 flags;
	__u32 ring_bytes;
};

struct umt_answer {
	__u32 version;
	__s32 error; /* 0 or a negative errno; nothing below is set then */
	__u32 subscriber;
	__u32 nr_cores;
	__u64 token[2];
};

#endif /* UMT_BROKER_H */
