/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uffd fill: for some milliseconds after a fault blocks are short, so that the next fault
 * waits for less.
 *
 * If the machine keeps the caller from its CPU for so long behind the fault, blocks are
 * long again: one attempt of many is enough.
 */
#include "ktest.h"

#include <pthread.h>

#include "uffd.h"

#define LEN (8 * MIB)
#define WANTED (LEN - 8 * page_bytes())
#define BLOCK ((size_t)64 << 10)
#define SHORT_BLOCK ((size_t)16 << 10)
#define ATTEMPTS 50

struct blocks {
	unsigned calls;
	size_t first; /* block behind a fault, or of all */
};

static int note_blocks(void *buf, size_t len, uint64_t offset, void *arg)
{
	struct blocks *blocks = arg;

	if (offset < WANTED && !blocks->first)
		blocks->first = len;
	blocks->calls++;
	uffd_words(buf, len, offset);
	return 0;
}

static void *read_word(void *arg)
{
	uint64_t word = *(const volatile uint64_t *)arg;

	return (void *)(uintptr_t)word;
}

static struct blocks fill_all(bool with_reader)
{
	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct blocks blocks = { 0 };
	char *at = map_private(LEN);
	pthread_t thread;
	void *word;

	fill.uffd = uffd_open(0);
	fill.addr = at;
	fill.len = LEN;
	fill.source_func = note_blocks;
	fill.source_arg = &blocks;
	opts.max_threads = 1;
	assert_true(uffd_register(fill.uffd, at, LEN));
	if (with_reader) {
		assert_int_equal(
			pthread_create(&thread, NULL, read_word, at + WANTED),
			0);
		assert_true(uffd_waits(fill.uffd));
	}
	assert_int_equal(ktask_uffd_fill(&fill, &opts), 0);
	if (with_reader) {
		pthread_join(thread, &word);
		assert_int_equal((uintptr_t)word, uffd_word(WANTED));
	}
	assert_int_equal(uffd_wrong(at, LEN, 0), SIZE_MAX);
	close(fill.uffd);
	munmap(at, LEN);
	return blocks;
}

static void blocks_are_long_where_nobody_waits(void **state)
{
	struct blocks blocks;

	(void)state;
	need_uffd();
	blocks = fill_all(false);
	assert_int_equal(blocks.first, BLOCK);
	assert_int_equal(blocks.calls, LEN / BLOCK);
}

static void blocks_are_short_behind_a_fault(void **state)
{
	struct blocks blocks = { .first = BLOCK };

	(void)state;
	need_uffd();
	for (int i = 0; i < ATTEMPTS && blocks.first != SHORT_BLOCK; i++)
		blocks = fill_all(true);
	assert_int_equal(blocks.first, SHORT_BLOCK);
}

KTEST_MAIN(KTEST(blocks_are_long_where_nobody_waits),
	   KTEST(blocks_are_short_behind_a_fault))
