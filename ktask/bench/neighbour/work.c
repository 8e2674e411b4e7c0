/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The jobs: memory to populate and to fill, items to compute, and three whose
 * threads hinder each other.
 *
 * An item is dependent integer arithmetic, calibrated once.  What hinders: a
 * lock around every chunk; one cache line that all write; a cost that grows
 * with the square of the number of other threads, which stands for a lock of
 * the kernel that is the more expensive the more wait for it.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ktask/ops.h>

#include "bench/common/backing.h"
#include "bench/common/clock.h"
#include "work.h"

#define NR_ITEMS 32768
#define CLUMP 64 /* neighbours that cost the same */
#define SKEW 100.0
#define HUGE_BYTES ((size_t)2 << 20)
/* Of a computing item, for those that write a line instead. */
#define LOOPS_PER_WRITE 2
#define HINDRANCE 1.5

static struct {
	size_t bytes;
	char *filled;
	size_t filled_bytes;
	double seconds; /* of all items, on one thread */
	size_t loops; /* of an average item */
	size_t *skewed; /* of each item */
} setup;

/* ---- memory ---- */

char *work_map(int thp_advice)
{
	size_t len = setup.bytes + HUGE_BYTES;
	char *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t skip;

	if (addr == MAP_FAILED)
		return NULL;
	skip = -(uintptr_t)addr & (HUGE_BYTES - 1);
	if (skip)
		munmap(addr, skip);
	if (skip < HUGE_BYTES)
		munmap(addr + skip + setup.bytes, HUGE_BYTES - skip);
	/* Fails on a kernel without huge pages, where all pages are small. */
	(void)madvise(addr + skip, setup.bytes, thp_advice);
	return addr + skip;
}

void work_unmap(char *addr)
{
	munmap(addr, setup.bytes);
}

static void keep_outcome(struct outcome *outcome,
			 const struct ktask_result *result, uint64_t start_ns)
{
	outcome->seconds = (double)(clock_ns() - start_ns) / 1e9;
	outcome->tail_seconds = (double)result->tail_ns / 1e9;
	outcome->threads = result->threads;
	outcome->lent = result->helpers_lent;
}

static int run_operation(const char *name, char *addr, struct count count,
			 struct outcome *outcome)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = addr,
				      .len = setup.bytes };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	uint64_t start_ns = clock_ns();
	int error;

	opts.max_threads = count.threads;
	opts.flags = count.fixed ? KTASK_FIXED : 0;
	opts.result = &result;
	error = -ktask_op_run(ktask_op_find(name), &args, &opts);
	keep_outcome(outcome, &result, start_ns);
	return error;
}

static int populate_memory(const struct work *work, struct count count,
			   struct outcome *outcome)
{
	char *addr = work_map(work->thp_advice);
	int error;

	if (!addr)
		return errno;
	error = run_operation("populate", addr, count, outcome);
	work_unmap(addr);
	return error;
}

static void drop_filled(void)
{
	if (setup.filled)
		munmap(setup.filled, setup.filled_bytes);
	setup.filled = NULL;
}

/* The same pages each time. */
static int fill_memory(const struct work *work, struct count count,
		       struct outcome *outcome)
{
	if (!setup.filled) {
		setup.filled = work_map(work->thp_advice);
		setup.filled_bytes = setup.bytes;
		if (!setup.filled)
			return errno;
		memset(setup.filled, 1, setup.bytes);
	}
	return run_operation("fill", setup.filled, count, outcome);
}

/* ---- items ---- */

static void spin_loops(size_t index, size_t loops)
{
	uint32_t x = (uint32_t)index + 1;

	for (size_t i = 0; i < loops; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
	}
	__asm__ volatile("" : : "r"(x));
}

static _Alignas(64) uint64_t line;

static void write_line(size_t index, size_t loops)
{
	for (size_t i = 0; i < loops; i += LOOPS_PER_WRITE)
		__atomic_fetch_add(&line, 1, __ATOMIC_RELAXED);
}

static _Alignas(64) unsigned inside;

static void spin_hindered(size_t index, size_t loops)
{
	double others = __atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);

	spin_loops(index,
		   (size_t)((double)loops * (1 + HINDRANCE * others * others)));
	__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
}

static int do_items(void *start, void *end, void *arg)
{
	const struct work *work = arg;

	for (size_t i = (size_t)start; i < (size_t)end; i++)
		work->item(i, work->skewed ? setup.skewed[i] : setup.loops);
	return 0;
}

int work_do_items(void *start, void *end, void *arg)
{
	for (size_t i = (size_t)start; i < (size_t)end; i++)
		spin_loops(i, setup.loops);
	return 0;
}

size_t work_items_in(double seconds)
{
	return (size_t)(seconds / setup.seconds * NR_ITEMS) + 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int do_locked(void *start, void *end, void *arg)
{
	int error;

	pthread_mutex_lock(&lock);
	error = do_items(start, end, arg);
	pthread_mutex_unlock(&lock);
	return error;
}

static int run_items(const struct work *work, ktask_thread_func func,
		     struct count count, struct outcome *outcome)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, func, (void *)work, 1);
	uint64_t start_ns = clock_ns();
	int error;

	if (count.fixed)
		ktask_ctl_set_fixed_threads(&ctl, count.threads);
	else
		ktask_ctl_set_max_threads(&ctl, count.threads);
	ktask_ctl_set_result(&ctl, &result);
	error = -ktask_run(NULL, NR_ITEMS, &ctl);
	keep_outcome(outcome, &result, start_ns);
	return error;
}

static int compute_items(const struct work *work, struct count count,
			 struct outcome *outcome)
{
	return run_items(work, do_items, count, outcome);
}

static int compute_locked(const struct work *work, struct count count,
			  struct outcome *outcome)
{
	return run_items(work, do_locked, count, outcome);
}

/* ---- the table ---- */

const struct work works[] = {
	{ "compute-flat", "items alike", compute_items, .item = spin_loops },
	{ "compute-skewed", "items that differ 100-fold", compute_items,
	  .item = spin_loops, .skewed = true },
	{ "populate-4k", "populate, 4 KiB pages", populate_memory,
	  .thp_advice = MADV_NOHUGEPAGE },
	{ "populate-thp", "populate, huge pages", populate_memory,
	  .thp_advice = MADV_HUGEPAGE },
	{ "fill", "fill present memory", fill_memory,
	  .thp_advice = MADV_HUGEPAGE },
	{ "lock", "a lock around each chunk", compute_locked,
	  .item = spin_loops },
	{ "line", "all write one cache line", compute_items,
	  .item = write_line },
	{ "worse", "each thread slows all others", compute_items,
	  .item = spin_hindered },
};

const unsigned nr_works = sizeof(works) / sizeof(*works);

const struct work *work_find(const char *name)
{
	for (unsigned i = 0; i < nr_works; i++)
		if (!strcmp(works[i].name, name))
			return &works[i];
	return NULL;
}

/* ---- how large ---- */

/* Loops of spin_loops() in a second, the best of several tries. */
static double loops_per_second(void)
{
	const size_t loops = 20 * 1000 * 1000;
	double best = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t start_ns = clock_ns();
		double rate;

		spin_loops(1, loops);
		rate = (double)loops / ((double)(clock_ns() - start_ns) / 1e9);
		best = rate > best ? rate : best;
	}
	return best;
}

/* From 1 to SKEW, as many small as large on a log scale, fixed for ever. */
static double cost_of(size_t item)
{
	uint64_t hash = (item / CLUMP + 1) * 0x9e3779b97f4a7c15u;

	return pow(SKEW, (double)(hash >> 40) / (1 << 24));
}

static int make_skewed(double loops)
{
	double total = 0;

	setup.skewed = calloc(NR_ITEMS, sizeof(*setup.skewed));
	if (!setup.skewed)
		return ENOMEM;
	for (size_t i = 0; i < NR_ITEMS; i++)
		total += cost_of(i);
	for (size_t i = 0; i < NR_ITEMS; i++)
		setup.skewed[i] = (size_t)(loops * cost_of(i) / total);
	return 0;
}

void works_size(size_t bytes)
{
	drop_filled();
	setup.bytes = bytes / HUGE_BYTES * HUGE_BYTES;
}

int works_init(size_t bytes, double seconds)
{
	double loops = loops_per_second() * seconds;

	works_size(bytes);
	setup.seconds = seconds;
	setup.loops = (size_t)(loops / NR_ITEMS) + 1;
	return make_skewed(loops);
}

void works_exit(void)
{
	drop_filled();
	free(setup.skewed);
	setup.skewed = NULL;
}
