/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random ranges, sizes, minimums, alignments, threads and costs: consecutive
 * chunks partition the range, each obeys every rule.
 */
#include "ktest.h"

#include "core/split.h"

#define ROUNDS (KTEST_ASAN || KTEST_TSAN ? 5000 : 20000)
#define MAX_CHUNKS 2000

struct draw {
	struct kt_split split;
	struct kt_cost cost;
	uint64_t base, units;
	unsigned threads;
};

/* Any number of bits is as likely as any other. */
static uint64_t random_bits(uint64_t *state, unsigned max_bits)
{
	unsigned bits = (unsigned)ktest_random_below(state, max_bits + 1);

	return bits ? ktest_random(state) >> (64 - bits) : 0;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
	return KT_MAX(value, least);
}

static struct draw draw_split(uint64_t *state)
{
	struct draw d;

	d.split.min_chunk = at_least(random_bits(state, 64), 1);
	d.split.align = 1ull << ktest_random_below(state, 64);
	d.split.target_ns = random_bits(state, 64);
	d.units = random_bits(state, 64);
	/* Low, high, or as high as it may be. */
	d.base = random_bits(state, 64);
	if (ktest_random_below(state, 2))
		d.base = UINT64_MAX - random_bits(state, 16);
	if (d.base > UINT64_MAX - d.units)
		d.base = UINT64_MAX - d.units;
	d.threads = (unsigned)random_bits(state, 32);
	d.cost.mean = random_bits(state, 64);
	d.cost.high = at_least(random_bits(state, 64), d.cost.mean);
	return d;
}

static void check_chunk(const struct draw *d, uint64_t from, uint64_t to,
			uint64_t size)
{
	const struct kt_split *split = &d->split;

	assert_true(to > from);
	assert_true(to <= d->units);
	if (to - from < split->min_chunk)
		assert_true(from == 0 && to == d->units);
	if (to < d->units) {
		assert_true(((d->base + to) & (split->align - 1)) == 0);
		assert_true(d->units - to >= split->min_chunk);
		/* Rounded by less than one alignment up, or any down. */
		assert_true(to - from <= size ||
			    to - from - size < split->align);
	}
}

/* Up to MAX_CHUNKS from @from on; returns where it stopped. */
static uint64_t walk_chunks(const struct draw *d, uint64_t from)
{
	for (unsigned nr = 0; from < d->units && nr < MAX_CHUNKS; nr++) {
		uint64_t left = d->units - from;
		uint64_t size =
			kt_split_size(&d->split, left, d->threads, &d->cost);
		uint64_t to;

		assert_true(size >= d->split.min_chunk);
		assert_true(size == d->split.min_chunk ||
			    size <= left / 4 / KT_MAX(d->threads, 1));
		to = kt_split_end(&d->split, d->base, from, size, d->units);
		check_chunk(d, from, to, size);
		from = to;
	}
	return from;
}

static void chunks_partition_the_range(void **state)
{
	uint64_t random = ktest_seed();

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct draw d = draw_split(&random);
		uint64_t end = walk_chunks(&d, 0);

		if (end == d.units)
			continue;
		/* Too many chunks: look at the last of them as well. */
		end = d.units - ktest_random_below(&random, 1000 + 1);
		if (end < d.units && end >= d.split.min_chunk &&
		    d.units - end >= d.split.min_chunk)
			walk_chunks(&d, end);
	}
}

KTEST_MAIN(KTEST(chunks_partition_the_range))
