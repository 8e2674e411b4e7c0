/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The work: memory to populate and to fill, items to compute.
 *
 * Items are dependent integer arithmetic, calibrated once so that all of a
 * case takes a set time on one thread; no timer is read inside.  In the skewed
 * case the cost of an item varies 100-fold and changes only every few dozen
 * items, from a fixed seed, so that every run of every peer has the same work.
 *
 * Behaves badly where the clock speed changes during a run: the calibration
 * then belongs to another speed, though to the same one for all peers.
 */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/common/backing.h"
#include "cases.h"
#include "bench/common/clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define NR_ITEMS 8192
#define ITEMS_SECONDS 0.2
#define SKEW 100.0
#define CLUMP_MIN 24
#define CLUMP_SPAN 80
#define MAX_THREADS 1024

static struct {
	char *addr; /* of the present mapping */
	char *space; /* address space, aligned for huge pages inside */
	size_t len;
	char *filled; /* populated once */
	uint32_t *loops; /* of each item; the skewed or the flat table */
	uint32_t *skewed;
	uint32_t *flat;
} work;

/* ---- memory ---- */

static void populate_blocks(size_t start, size_t end, void *arg)
{
	/* Fails only without memory, and then there is nothing to compare. */
	if (madvise(work.addr + start * BLOCK_BYTES,
		    (end - start) * BLOCK_BYTES, MADV_POPULATE_WRITE))
		abort();
}

static int map_fresh(const struct bench_case *c)
{
	work.filled = NULL; /* it is this very space */
	backing_renew(work.len, c->thp_advice);
	work.addr = mmap(work.space, work.len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (work.addr == MAP_FAILED)
		return errno;
	/* EINVAL: a kernel without huge pages, where all pages are small. */
	return madvise(work.addr, work.len, c->thp_advice) && errno != EINVAL
		       ? errno
		       : 0;
}

static void unmap_space(void)
{
	munmap(work.space, work.len);
	/* Keep the address space, so that nothing else settles there. */
	mmap(work.space, work.len, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void fill_blocks(size_t start, size_t end, void *arg)
{
	memset(work.addr + start * BLOCK_BYTES, 0, (end - start) * BLOCK_BYTES);
}

/* The same pages in every run; they are there already. */
static int map_filled(const struct bench_case *c)
{
	int error;

	if (!work.filled) {
		error = map_fresh(c);
		if (error)
			return error;
		populate_blocks(0, work.len / BLOCK_BYTES, NULL);
		work.filled = work.addr;
	}
	work.addr = work.filled;
	return 0;
}

static void keep_space(void)
{
}

/* ---- items ---- */

struct finish_line {
	_Alignas(64) uint64_t end_ns; /* of the thread's last chunk; 0 none */
	uint64_t busy_ns;
	uint64_t longest_ns;
	uint64_t nr_chunks;
};

static struct finish_line lines[MAX_THREADS];
static atomic_uint nr_lines;
static __thread struct finish_line *my_line;

static struct finish_line *own_line(void)
{
	if (!my_line)
		my_line = &lines[atomic_fetch_add(&nr_lines, 1) % MAX_THREADS];
	return my_line;
}

static uint32_t spin_loops(uint32_t loops, uint32_t seed)
{
	for (uint32_t i = 0; i < loops; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 17;
		seed ^= seed << 5;
	}
	return seed;
}

static void compute_items(size_t start, size_t end, void *arg)
{
	struct finish_line *line = own_line();
	uint64_t start_ns = clock_ns(), taken_ns;
	volatile uint32_t sink;

	for (size_t i = start; i < end; i++)
		sink = spin_loops(work.loops[i], (uint32_t)i + 1);
	(void)sink;
	line->end_ns = clock_ns();
	taken_ns = line->end_ns - start_ns;
	line->busy_ns += taken_ns;
	line->nr_chunks++;
	if (taken_ns > line->longest_ns)
		line->longest_ns = taken_ns;
}

static int prepare_items(const struct bench_case *c)
{
	work.loops = c->skewed ? work.skewed : work.flat;
	memset(lines, 0, sizeof(lines));
	return 0;
}

struct case_end case_last_end(void)
{
	struct case_end end = { 0 };
	uint64_t last_ns = 0, before_ns = 0, busy_ns = 0, nr_chunks = 0;
	uint64_t longest_ns = 0;

	for (unsigned i = 0; i < MAX_THREADS; i++) {
		const struct finish_line *line = &lines[i];

		if (!line->nr_chunks)
			continue;
		end.threads++;
		busy_ns += line->busy_ns;
		nr_chunks += line->nr_chunks;
		if (line->longest_ns > longest_ns)
			longest_ns = line->longest_ns;
		if (line->end_ns > last_ns) {
			before_ns = last_ns;
			last_ns = line->end_ns;
		} else if (line->end_ns > before_ns) {
			before_ns = line->end_ns;
		}
	}
	if (end.threads > 1)
		end.tail_seconds = (double)(last_ns - before_ns) / 1e9;
	if (nr_chunks)
		end.mean_chunk_seconds =
			(double)busy_ns / 1e9 / (double)nr_chunks;
	end.longest_chunk_seconds = (double)longest_ns / 1e9;
	return end;
}

/* Loops in a second, the best of several tries. */
static double loops_per_second(void)
{
	const uint32_t loops = 20 * 1000 * 1000;
	volatile uint32_t sink;
	double best = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t start_ns = clock_ns();
		double rate;

		sink = spin_loops(loops, 1);
		rate = loops / ((double)(clock_ns() - start_ns) / 1e9);
		if (rate > best)
			best = rate;
	}
	(void)sink;
	return best;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Relative costs from 1 to SKEW, as many small as large on a log scale. */
static double skewed_costs(double *cost)
{
	uint32_t state = 42;
	double total = 0;

	for (size_t i = 0; i < NR_ITEMS;) {
		size_t left = CLUMP_MIN + next_random(&state) % CLUMP_SPAN;
		double c = pow(SKEW, next_random(&state) / (double)0xffffff);

		for (; left && i < NR_ITEMS; left--, i++) {
			cost[i] = c;
			total += c;
		}
	}
	return total;
}

static int make_items(void)
{
	double budget = loops_per_second() * ITEMS_SECONDS;
	double *cost = calloc(NR_ITEMS, sizeof(*cost));
	double total;

	work.skewed = calloc(NR_ITEMS, sizeof(*work.skewed));
	work.flat = calloc(NR_ITEMS, sizeof(*work.flat));
	if (!cost || !work.skewed || !work.flat) {
		free(cost);
		return ENOMEM;
	}
	total = skewed_costs(cost);
	for (size_t i = 0; i < NR_ITEMS; i++) {
		work.skewed[i] = (uint32_t)(budget * cost[i] / total);
		work.flat[i] = (uint32_t)(budget / NR_ITEMS);
	}
	free(cost);
	return 0;
}

/* ---- the table ---- */

const struct bench_case bench_cases[] = {
	{
		.name = "populate-4k",
		.title = "populate anonymous memory, 4 KiB pages",
		.operation = "populate",
		.memory = true,
		.chunks = { 1, 4, 16, 64 },
		.prepare = map_fresh,
		.work = populate_blocks,
		.finish = unmap_space,
		.thp_advice = MADV_NOHUGEPAGE,
	},
	{
		.name = "populate-thp",
		.title = "populate anonymous memory, transparent huge pages",
		.operation = "populate",
		.memory = true,
		.chunks = { 1, 4, 16, 64 },
		.prepare = map_fresh,
		.work = populate_blocks,
		.finish = unmap_space,
		.thp_advice = MADV_HUGEPAGE,
	},
	{
		.name = "fill",
		.title = "fill present memory with zeroes",
		.operation = "fill",
		.memory = true,
		.chunks = { 1, 4, 16, 64 },
		.prepare = map_filled,
		.work = fill_blocks,
		.finish = keep_space,
		.thp_advice = MADV_HUGEPAGE,
	},
	{
		.name = "compute-flat",
		.title = "compute, all items alike",
		.chunks = { 1, 8, 64, 256 },
		.prepare = prepare_items,
		.work = compute_items,
		.finish = keep_space,
	},
	{
		.name = "compute-skewed",
		.title = "compute, cost per item varying 100-fold in clumps",
		.chunks = { 1, 4, 16, 64 },
		.prepare = prepare_items,
		.work = compute_items,
		.finish = keep_space,
		.skewed = true,
	},
};

const unsigned nr_bench_cases = sizeof(bench_cases) / sizeof(*bench_cases);

struct peer_job case_job(const struct bench_case *c, unsigned threads,
			 size_t chunk_units)
{
	struct peer_job job = {
		.nr_units = c->memory ? work.len / BLOCK_BYTES : NR_ITEMS,
		.chunk_units = chunk_units,
		.threads = threads,
		.work = c->work,
	};

	if (c->memory) {
		job.operation = c->operation;
		job.addr = work.addr;
		job.len = work.len;
	}
	return job;
}

int cases_init(size_t size_bytes)
{
	uintptr_t base;
	char *space;

	work.len = size_bytes / BLOCK_BYTES * BLOCK_BYTES;
	space = mmap(NULL, work.len + BLOCK_BYTES, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		return errno;
	base = ((uintptr_t)space + BLOCK_BYTES - 1) & ~(BLOCK_BYTES - 1);
	work.space = (char *)base;
	return make_items();
}

void cases_exit(void)
{
	free(work.skewed);
	free(work.flat);
}
