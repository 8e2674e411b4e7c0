/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the program in the kernel and the library agree upon, besides the
 * public structures of umt.h.
 *
 * Locking: there is none.  Fields are written by:
 *
 *	U: the subscriber's process; the program reads them
 *	L: the process that loaded the program, before the subscriber has a table
 *	P: the program: the first thread to add itself, found by compare-and-swap
 *	R: whoever may write the record (umt.bpf.c)
 */
#ifndef UMT_SHARED_H
#define UMT_SHARED_H

#include <umt.h>

#define UMT_SUBSCRIBERS 256

/* Indexes into umt_core.reserved. */
enum umt_core_flag {
	UMT_CORE_TOLD, /* there is an unread event: the core is idle */
	UMT_CORE_ARMED, /* make the core's descriptor readable at the next change */
};

/*
 * Entry 0 of a subscriber's table; core N is entry N + 1.  Only user space
 * writes here, so the cache line stays shared between the cores.
 */
struct umt_word {
	__u32 wanted; /* U */
	__u32 wake_bytes; /* trace: wake the reader once so much is unread; U */
	__u32 reserved[14];
} __attribute__((aligned(64)));

/*
 * What a subscriber may do.  Only the process that loaded the program can write it.  The
 * subscriber's own table is writable for a process that may be hostile (umtd.8).
 */
struct umt_grant {
	__u64 token[2]; /* a process that knows it may add its threads; L */
	__u32 tgid; /* the first process that added a thread; P */
	__u32 flags; /* UMT_TRACE, UMT_INHERIT; L */
	__u32 level; /* of its PID namespace; 0: the initial one; P */
	__u32 reserved;
};

/* A map in the kernel, whoever made it. */
struct umt_map {
	__u32 id;
	__u32 reserved;
	__s64 holders; /* descriptors, mappings, other maps, programs */
};

/* A thread; R */
struct umt_record {
	__u16 cpu;
	__u8 counted;
	__u8 traced; /* one of its subscribers wants every event */
	__u8 stale; /* one of its subscribers is gone */
	__u8 nr;
	__u16 subscriber[UMT_MEMBERSHIPS];
	__u16 reserved;
	__u32 tid; /* while traced: its number in the tracer's PID namespace */
};

/* The kernel copies the whole record, so it must have no padding. */
_Static_assert(sizeof(struct umt_record) ==
		       4 * sizeof(__u8) + 2 * sizeof(__u16) +
			       UMT_MEMBERSHIPS * sizeof(__u16) + sizeof(__u32),
	       "a record has no padding");

/*
 * Arguments of the program that threads run to add themselves.  It uses the highest
 * possible argument.  The kernel refuses to attach it to a tracepoint that has fewer
 * arguments, which is every one that fires often.  So whoever has its descriptor can only
 * run it for the calling thread.
 */
enum umt_arg {
	UMT_ARG_OP,
	UMT_ARG_SUBSCRIBER,
	UMT_ARG_PROOF, /* address of the token in the caller's memory */
	UMT_ARG_TOKEN = 10, /* and 11 */
	UMT_NR_ARGS = 12,
};

enum umt_op {
	UMT_OP_ADD,
	UMT_OP_REMOVE,
};

#endif /* UMT_SHARED_H */
