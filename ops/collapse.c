/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * collapse: make huge pages of small ones, with a guard.
 *
 * As the plain call does it goes on past huge pages that cannot be made at the
 * moment (-EAGAIN), and ends with the mapping in which there were such; anything
 * else ends it at once.
 *
 * The guard.  In fragmented memory the kernel moves pages about before it
 * gets a huge page, which may take a hundred times as long as the copying that
 * collapsing consists of.  The measure is how fast this machine copies in its
 * cache: two steps in a row that cost more than GUARD_FACTOR times that, and
 * the rest keeps its small pages.
 *
 * By one thread unless more are asked for: the kernel copies under the lock of
 * the address space, taken for writing.  2 GiB of private memory, Linux 6.18:
 * 0.53 s by one thread, 1.12 s by two.
 *
 * Where it behaves badly: the guard sees only whole steps, and nothing of a
 * mapping any more in which a huge page was refused with -EINVAL.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "mapping.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

/* Plenty of memory: some 30 times as long as copying in the cache.  The host of
 * a virtual machine that has to give the page first: up to 300 times. */
#define STEP_BYTES (8 * MIB)
#define GUARD_FACTOR 1024
#define GUARD_STEPS 2
#define SAMPLE_BYTES (64 * KIB)
#define SAMPLES 8
/* Where there is no memory to measure with: 10 GB/s. */
#define USUAL_COPY_NS 0.1

struct collapse {
	struct op_job *job;
	int pidfd; /* -1: this process */
	double copy_ns; /* for a byte */
	_Atomic unsigned slow; /* steps in a row */
	pthread_mutex_t lock; /* for those below */
	uintptr_t first; /* huge page that failed on its own; 0: none */
	uintptr_t last; /* end of the last step in which one did */
	int last_error;
};

/* Beside other work time passes that nothing was done in. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The best of a few, so that no interruption counts.  Not on the stack, which
 * is the program's, and may be small. */
static double measure_copying(void)
{
	char *from = malloc(2 * SAMPLE_BYTES), *to = from + SAMPLE_BYTES;
	uint64_t best_ns = UINT64_MAX;

	if (!from)
		return USUAL_COPY_NS;
	memset(from, 1, 2 * SAMPLE_BYTES);
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t ns = cpu_ns();

		memcpy(to, from, SAMPLE_BYTES);
		__asm__ volatile("" : : "r"(to) : "memory");
		ns = cpu_ns() - ns;
		if (ns < best_ns)
			best_ns = ns;
	}
	free(from);
	return (double)(best_ns ? best_ns : 1) / SAMPLE_BYTES;
}

static int collapse_once(const struct collapse *collapse, uintptr_t start,
			 uintptr_t end)
{
	struct iovec range = { (void *)start, end - start };
	long done;

	if (collapse->pidfd < 0)
		done = syscall(SYS_madvise, start, end - start, MADV_COLLAPSE);
	else
		done = syscall(SYS_process_madvise, collapse->pidfd, &range, 1,
			       MADV_COLLAPSE, 0);
	return done < 0 ? -errno : 0;
}

/* The first huge page that fails; what is huge already costs 1 us.  The edges of
 * the range need not be edges of huge pages, those in between are. */
static uintptr_t find_first(const struct collapse *collapse, uintptr_t start,
			    uintptr_t end)
{
	uintptr_t huge = collapse->job->align, done = start, bad = end;

	while (bad - done > huge) {
		uintptr_t half = (done + (bad - done) / 2) / huge * huge;

		if (half <= done)
			half = (done / huge + 1) * huge;
		if (collapse_once(collapse, start, half))
			bad = half;
		else
			done = half;
	}
	return done;
}

/* One that keeps no other from being collapsed. */
static void note_failure(struct collapse *collapse, uintptr_t start,
			 uintptr_t end, int error)
{
	pthread_mutex_lock(&collapse->lock);
	if (!collapse->first || start < collapse->first)
		collapse->first = find_first(collapse, start, end);
	if (end > collapse->last) {
		collapse->last = end;
		collapse->last_error = error;
	}
	pthread_mutex_unlock(&collapse->lock);
}

static void guard(struct collapse *collapse, uintptr_t start, uintptr_t end,
		  uint64_t ns)
{
	double most_ns =
		GUARD_FACTOR * collapse->copy_ns * (double)(end - start);

	if (!(collapse->job->flags & KTASK_COLLAPSE_ALL) &&
	    (double)ns > most_ns)
		atomic_fetch_add(&collapse->slow, 1);
	else
		atomic_store(&collapse->slow, 0);
}

/* Whether the plain call goes on past memory of which nothing is there depends
 * on the kernel, which therefore decides. */
static int collapse_rest(const struct op_job *job, uintptr_t start)
{
	return collapse_once(job->state, start,
			     (uintptr_t)job->addr + job->len);
}

static int collapse_step(struct op_job *job, uintptr_t start, uintptr_t end)
{
	struct collapse *collapse = job->state;
	uint64_t ns = cpu_ns();
	int error = collapse_once(collapse, start, end);

	if (error == -EAGAIN) {
		note_failure(collapse, start, end, error);
	} else if (error) {
		op_fail_at(job, find_first(collapse, start, end));
		return error == -EINVAL ? collapse_rest(job, start) : error;
	}
	guard(collapse, start, end, cpu_ns() - ns);
	return 0;
}

/* In steps of its own: one thread alone gets all as one chunk. */
static int collapse_chunk(void *start, void *end, void *arg)
{
	struct op_job *job = arg;
	const struct collapse *collapse = job->state;
	uintptr_t pos = (uintptr_t)start, last = (uintptr_t)end;
	int error = 0;

	while (pos < last && !error) {
		uintptr_t next = (pos | (STEP_BYTES - 1)) + 1;

		if (next > last || !next)
			next = last;
		if (atomic_load(&collapse->slow) >= GUARD_STEPS) {
			op_fail_at(job, pos);
			return -ETIME;
		}
		error = collapse_step(job, pos, next);
		pos = next;
	}
	return error;
}

static int collapse_mapping(const struct mapping *mapping, void *arg)
{
	struct collapse *collapse = arg;
	struct op_job *job = collapse->job;
	uintptr_t first = (uintptr_t)job->addr, last = first + job->len;
	uintptr_t start = mapping->start > first ? mapping->start : first;
	int error;

	if (mapping->end < last)
		last = mapping->end;
	error = op_go_part(job, start, last, collapse_chunk);
	if (!error && collapse->last_error)
		error = op_fail(job, collapse->last_error,
				(void *)collapse->first);
	return error;
}

/* As the plain call, which does what is mapped and then tells of holes. */
struct walk {
	struct collapse *collapse;
	uintptr_t pos;
	uintptr_t hole;
};

static int visit(const struct mapping *mapping, void *arg)
{
	struct walk *walk = arg;

	if (mapping->start > walk->pos && !walk->hole)
		walk->hole = walk->pos;
	walk->pos = mapping->end;
	return collapse_mapping(mapping, walk->collapse);
}

static int go_by_mappings(struct collapse *collapse)
{
	struct op_job *job = collapse->job;
	uintptr_t start = (uintptr_t)job->addr, end = start + job->len;
	struct walk walk = { collapse, start, 0 };
	struct mapping whole = { .start = start, .end = end };
	int error = mapping_each_of(job->pid, start, end, 0, visit, &walk);

	if (error < 0 && walk.pos == start)
		return collapse_mapping(&whole, collapse);
	if (!error && !walk.hole && walk.pos < end)
		walk.hole = walk.pos;
	if (!error && walk.hole)
		error = op_fail(job, -ENOMEM, (void *)walk.hole);
	return error;
}

static int collapse_around(struct op_job *job)
{
	struct collapse collapse = { .job = job,
				     .pidfd = -1,
				     .lock = PTHREAD_MUTEX_INITIALIZER };
	int error;

	if (!(job->flags & KTASK_COLLAPSE_ALL))
		collapse.copy_ns = measure_copying();
	if (job->pid) {
		collapse.pidfd = (int)syscall(SYS_pidfd_open, job->pid, 0);
		if (collapse.pidfd < 0)
			return op_fail(job, -errno, job->addr);
	}
	job->state = &collapse;
	error = go_by_mappings(&collapse);
	if (collapse.pidfd >= 0)
		close(collapse.pidfd);
	return error;
}

/*
 * Huge pages even where the machine gives out none by itself: the call makes
 * them all the same.
 */
static void collapse_align(struct op_job *job)
{
	size_t len = job->len;

	/* So that small ranges get the edges of large ones. */
	job->len = SIZE_MAX / 2;
	mapping_align_store(job);
	job->len = len;
}

/*
 * min_chunk: the kernel waits for all CPUs once a call, so that short ones do
 * not pay; 8 MiB take 4 ms.
 */
const struct ktask_op op_collapse = {
	.name = "collapse",
	.summary = "make huge pages of the small pages of a range",
	.min_chunk = STEP_BYTES,
	.known_flags = KTASK_COLLAPSE_ALL,
	.usual_threads = 1,
	.takes_pid = true,
	.align = collapse_align,
	.chunk = collapse_chunk,
	.around = collapse_around,
};
