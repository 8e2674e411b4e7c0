/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Assertions of libumt and libktrt, and the order in which a thread takes their locks.
 * They are evaluated in builds with the address or the thread sanitizer: if one fails, the
 * program ends and the sanitizer reports where.  Other builds have no code or data of them.
 *
 * Each lock has a rank, a power of two.  A thread holds at most one lock of each rank, and
 * takes locks by rising rank.  The ranks that it holds are in a word of its own, so
 * checking them does not touch the lock.
 *
 * Behaves badly: two locks of one rank cannot be told apart here.
 */
#ifndef COMMON_LOCK_RANK_H
#define COMMON_LOCK_RANK_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RANK_ASSERTS 1
#define rank_assert(condition) ((condition) ? (void)0 : __builtin_trap())
/* The thread is about to wait for a lock of @rank; it has left one. */
#define rank_take(held, rank) \
	(rank_assert((held) < (rank)), (void)((held) |= (rank)))
#define rank_drop(held, rank) \
	(rank_assert((held) & (rank)), (void)((held) &= ~(unsigned)(rank)))
#define rank_assert_held(held, rank) rank_assert((held) & (rank))
#else
/* Conditions are compiled; @held need not be declared. */
#define rank_assert(condition) ((void)sizeof(!(condition)))
#define rank_take(held, rank) ((void)0)
#define rank_drop(held, rank) ((void)0)
#define rank_assert_held(held, rank) ((void)0)
#endif

#endif /* COMMON_LOCK_RANK_H */
