/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Touches memory in order and checks it, and waits until something is present ahead.
 * What waits for helpers waits long: they may get no CPU for a while.
 */
#ifndef TESTS_PRELOAD_TOUCHES_H
#define TESTS_PRELOAD_TOUCHES_H

#include <stdbool.h>
#include <time.h>

#include "probe.h"

#define MIB ((size_t)1 << 20)
#define BLOCK (2 * MIB)
#define WAIT_MS 20000

static inline void sleep_ms(long ms)
{
	struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static inline size_t count_present(char *base, size_t len)
{
	return resident_pages(base, len / PAGE_BYTES * PAGE_BYTES);
}

static inline char *page_start(char *block)
{
	return (char *)(((uintptr_t)block + PAGE_BYTES - 1) &
			~(PAGE_BYTES - 1));
}

static inline void fill_pages(char *base, size_t from, size_t to)
{
	for (size_t at = from; at < to; at += PAGE_BYTES)
		*(uint64_t *)(base + at) = at * 2654435761u + 1;
}

static inline void check_pages(const char *base, size_t from, size_t to)
{
	for (size_t at = from; at < to; at += PAGE_BYTES)
		must_hold(*(const uint64_t *)(base + at) ==
				  at * 2654435761u + 1,
			  "contents");
}

static inline bool is_ahead(char *base, size_t at, size_t len)
{
	size_t reach = len - at < 64 * MIB ? len - at : 64 * MIB;

	return count_present(base + at, reach) > 0;
}

/*
 * In order, block by block, waiting for what is made ahead of it.  Return: where it
 * was seen; 0: nowhere.
 */
static inline size_t touch_until_helped(char *base, size_t len)
{
	long waited = 0;

	for (size_t at = 0; at < len; at += BLOCK) {
		size_t end = len - at < BLOCK ? len : at + BLOCK;

		fill_pages(base, at, end);
		for (int i = 0; end < len && i < 200 && waited < WAIT_MS; i++) {
			if (is_ahead(base, end, len))
				return end;
			sleep_ms(5);
			waited += 5;
		}
	}
	return 0;
}

#endif /* TESTS_PRELOAD_TOUCHES_H */
