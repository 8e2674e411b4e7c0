/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What programs of random calls share: numbers that follow from a seed, ranges of an
 * arena with a constant address, and a line for each call on one.
 */
#ifndef TESTS_PRELOAD_RANDOM_RANGES_H
#define TESTS_PRELOAD_RANDOM_RANGES_H

#include "probe.h"

/* Far from where the kernel puts what has no fixed address. */
#define ARENA ((char *)0x200000000000)
#define NR(array) (sizeof(array) / sizeof(*(array)))

struct range {
	char *addr;
	size_t len;
};

static uint64_t random_state;

static inline void seed_random(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15u + 1;
}

/* xorshift64* */
static inline uint64_t random_word(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 2685821657736338717u;
}

static inline size_t random_below(size_t bound)
{
	return (size_t)(random_word() >> 16) % bound;
}

static inline void print_call(const char *name, struct range range, int what,
			      long rc)
{
	int error = errno;

	printf("%s(%lx, %lx, %x)", name, (unsigned long)(range.addr - ARENA),
	       (unsigned long)range.len, (unsigned)what);
	print_outcome("", rc, error);
	puts("");
}

#endif /* TESTS_PRELOAD_RANDOM_RANGES_H */
