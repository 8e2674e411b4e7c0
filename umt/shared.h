/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the program in the kernel and the library agree upon, besides the
 * public structures of umt.h.
 */
#ifndef UMT_SHARED_H
#define UMT_SHARED_H

#include <umt.h>

#define UMT_USERS 64

/*
 * Entry 0 of a user's table; core N is entry N + 1.  Only user space writes
 * here, so the cache line stays shared between the cores.
 */
struct umt_word {
	__u32 wanted;
	__u32 flags; /* UMT_TRACE, UMT_INHERIT */
	__u32 wake_bytes; /* trace: wake the reader with so much unread */
	__u32 reserved[13];
} __attribute__((aligned(64)));

/* First argument of the program that threads run to add themselves. */
enum umt_op {
	UMT_OP_ADD,
	UMT_OP_REMOVE,
};

#endif /* UMT_SHARED_H */
