/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Contents that are known at every position, so that a byte which is missing,
 * doubled or in a wrong place is noticed: random bytes over and over, with a
 * period that is no multiple of any page or block.
 */
#ifndef TEST_PATTERN_H
#define TEST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PATTERN_PERIOD 65521

static inline const unsigned char *pattern_table(void)
{
	static unsigned char table[PATTERN_PERIOD];
	static bool made;
	uint64_t state = 1;

	for (size_t i = 0; !made && i < PATTERN_PERIOD; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		table[i] = (unsigned char)(state >> 56);
	}
	made = true;
	return table;
}

/* pattern_fill - [from, from + len) of the pattern */
static inline void pattern_fill(void *to, size_t len, size_t from)
{
	unsigned char *at = to;

	while (len) {
		size_t phase = from % PATTERN_PERIOD;
		size_t part = PATTERN_PERIOD - phase;

		if (part > len)
			part = len;
		memcpy(at, pattern_table() + phase, part);
		at += part;
		from += part;
		len -= part;
	}
}

/* pattern_same - is that what is there? */
static inline bool pattern_same(const void *what, size_t len, size_t from)
{
	const unsigned char *at = what;

	while (len) {
		size_t phase = from % PATTERN_PERIOD;
		size_t part = PATTERN_PERIOD - phase;

		if (part > len)
			part = len;
		if (memcmp(at, pattern_table() + phase, part))
			return false;
		at += part;
		from += part;
		len -= part;
	}
	return true;
}

#endif /* TEST_PATTERN_H */
