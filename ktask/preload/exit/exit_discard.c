/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Gives back the memory of a process in parallel, as its last act.  For the gain see
 * bench/notebook/2026-11.md.
 *
 * This is not a job of the library, because the memory that is given back contains the
 * library's own allocations.  Only this code, the stacks, the thread's TLS block (which
 * the compiler uses) and one mapping made here are used.  Helpers are SCHED_IDLE if that
 * can be undone.  Nobody waits for them: when the process ends, each is in a chunk of 2 ms
 * at most, and the kernel ends them at the caller's priority.
 *
 * Locking: there is no lock.  "next" is atomic: whoever increments it owns that chunk.
 * The rest is written before the first helper exists, and only read from then on.
 *
 * exit.c decides whether that may be done.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/shim.h"
#include "util/file.h"
#include "util/maps_line.h"
#include "util/raw_syscalls.h"
#include "util/sched_attr.h"

#ifdef SHIM_RAW

#define NR_RANGES 1024
#define NR_KEPT 4
#define NR_THREADS 8
#define STACK_BYTES 16384
/* 2 ms of 4 KiB pages, and a multiple of most sizes of hugetlb pages.  Larger if there is
 * very much address space, most of which is empty. */
#define CHUNK_BYTES ((uintptr_t)32 << 20)
#define NR_CHUNKS 8192
/* Smaller mappings have little memory, and some of it is still needed. */
#define RANGE_MIN_BYTES ((uintptr_t)8 << 20)
/* Around the stack, the thread's own block and our static data. */
#define KEEP_BYTES ((uintptr_t)1 << 20)
#define HUGE_BYTES ((uintptr_t)2 << 20)

struct range {
	uintptr_t start, end;
};

struct last {
	atomic_size_t next; /* chunk, counted over all ranges */
	uintptr_t chunk_bytes;
	int advice;
	int tids[NR_THREADS];
	size_t nr;
	struct range ranges[NR_RANGES];
	struct range kept[NR_KEPT];
	char stacks[NR_THREADS][STACK_BYTES] __attribute__((aligned(64)));
};

/* By the linker: what begins as zero, in this library. */
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

/* Edges are multiples of the size. */
static size_t nr_chunks(const struct last *last, const struct range *range)
{
	return (range->end - 1) / last->chunk_bytes -
	       range->start / last->chunk_bytes + 1;
}

/* The chunk with that number, false behind the last one. */
static bool find_chunk(const struct last *last, size_t number,
		       struct range *chunk)
{
	for (size_t i = 0; i < last->nr; i++) {
		const struct range *range = &last->ranges[i];
		size_t nr = nr_chunks(last, range);

		if (number >= nr) {
			number -= nr;
			continue;
		}
		chunk->start = (range->start / last->chunk_bytes + number) *
			       last->chunk_bytes;
		chunk->end = chunk->start + last->chunk_bytes;
		if (chunk->start < range->start)
			chunk->start = range->start;
		if (chunk->end > range->end)
			chunk->end = range->end;
		return true;
	}
	return false;
}

/* Return: how many chunks were done. */
static size_t discard_chunks(struct last *last)
{
	struct range chunk;
	size_t nr = 0;

	for (; find_chunk(last, atomic_fetch_add(&last->next, 1), &chunk); nr++)
		raw_call3(SYS_madvise, (long)chunk.start,
			  (long)(chunk.end - chunk.start), last->advice);
	return nr;
}

/* By the library's call, for which filters were checked.  SCHED_IDLE ignores @nice. */
static void set_policy(long tid, uint32_t policy, int nice)
{
	struct sched_attr_v0 attr = { .size = sizeof(attr),
				      .policy = policy,
				      .nice = nice };

	raw_call3(SYS_sched_setattr, tid, (long)&attr, 0);
}

static void run_worker(void *arg)
{
	struct last *last = arg;

	discard_chunks(last);
	for (;;)
		raw_call3(SYS_exit, 0, 0, 0);
}

/* Add the parts of a mapping between the places that are kept. */
static void add_range(struct last *last, uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < NR_KEPT; i++) {
		const struct range *kept = &last->kept[i];

		if (kept->start >= end || kept->end <= start)
			continue;
		if (kept->start > start)
			add_range(last, start, kept->start);
		start = kept->end;
		if (start >= end)
			return;
	}
	if (end - start >= RANGE_MIN_BYTES && last->nr < NR_RANGES)
		last->ranges[last->nr++] = (struct range){ start, end };
}

/* Only writable mappings have memory that is the process's own. */
static void add_mappings(struct last *last)
{
	struct file_lines lines;
	struct maps_line mapping;
	const char *line;

	if (!file_lines_open(&lines, "/proc/self/maps"))
		return;
	lines.cuts = true;
	while ((line = file_lines_next(&lines)))
		if (maps_line_parse(line, &mapping) && mapping.writable &&
		    strcmp(mapping.name, "[stack]") &&
		    mapping.end - mapping.start >= RANGE_MIN_BYTES)
			add_range(last, mapping.start, mapping.end);
	file_lines_end(&lines);
}

static void keep_range(struct range *kept, const void *at, uintptr_t before,
		       uintptr_t after)
{
	uintptr_t pos = (uintptr_t)at;

	kept->start = (pos - before) & ~(HUGE_BYTES - 1);
	kept->end = (pos + after + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
}

/* Ascending, as add_range() wants them. */
static void sort_kept(struct range *kept)
{
	for (size_t i = 1; i < NR_KEPT; i++) {
		for (size_t j = i; j && kept[j].start < kept[j - 1].start;
		     j--) {
			struct range other = kept[j];

			kept[j] = kept[j - 1];
			kept[j - 1] = other;
		}
	}
}

static struct last *plan_chunks(struct shim_last *told)
{
	struct last *last =
		real_mmap(NULL, sizeof(*last), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (last == MAP_FAILED)
		return NULL;
	last->advice = real_knows_advice(MADV_DONTNEED_LOCKED)
			       ? MADV_DONTNEED_LOCKED
			       : MADV_DONTNEED;
	keep_range(&last->kept[0], last, 0, sizeof(*last));
	keep_range(&last->kept[1], __builtin_frame_address(0), KEEP_BYTES,
		   KEEP_BYTES);
	keep_range(&last->kept[2], raw_thread_pointer(), KEEP_BYTES,
		   KEEP_BYTES);
	keep_range(&last->kept[3], __bss_start, KEEP_BYTES,
		   (uintptr_t)(_end - __bss_start) + KEEP_BYTES);
	sort_kept(last->kept);
	add_mappings(last);
	told->bytes = 0;
	for (size_t i = 0; i < last->nr; i++)
		told->bytes += last->ranges[i].end - last->ranges[i].start;
	last->chunk_bytes = CHUNK_BYTES;
	while (told->bytes / last->chunk_bytes > NR_CHUNKS)
		last->chunk_bytes *= 2;
	return last;
}

static void discard_with_threads(struct last *last, unsigned nr_threads,
				 const int *lend_nice, struct shim_last *told)
{
	long helpers[NR_THREADS];
	size_t nr_own, nr_others;
	unsigned nr = 0;

	while (nr < NR_THREADS && nr + 1 < nr_threads) {
		helpers[nr] = raw_thread(last->stacks[nr] + STACK_BYTES,
					 run_worker, last, &last->tids[nr]);
		if (helpers[nr] <= 0)
			break;
		/* Here, so that none lowers itself behind the loop below. */
		if (lend_nice)
			set_policy(helpers[nr], SCHED_IDLE, 0);
		nr++;
	}
	nr_own = discard_chunks(last);
	for (unsigned i = 0; lend_nice && i < nr; i++)
		set_policy(helpers[i], SCHED_OTHER, *lend_nice);
	/* Our own last claim found nothing. */
	nr_others = last->next - nr_own - 1;
	told->others_percent = nr_own ? 100 * nr_others / nr_own : 0;
	told->threads = nr + 1;
}

bool shim_last_discard(unsigned nr_threads, const int *lend_nice,
		       struct shim_last *told)
{
	struct last *last = plan_chunks(told);

	if (!last)
		return false;
	if (!last->nr) {
		real_munmap(last, sizeof(*last));
		return false;
	}
	discard_with_threads(last, nr_threads, lend_nice, told);
	return true;
}

#else

bool shim_last_discard(unsigned nr_threads, const int *lend_nice,
		       struct shim_last *told)
{
	return false;
}

#endif
