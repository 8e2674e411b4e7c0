/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What can be measured: every operation of the library, and scenes made of operations.
 * Each run maps its memory, prepares it, is timed, and unmaps it, so that runs do not
 * depend on each other.  Before an operation that makes pages, free memory is renewed: see
 * renew_memory.h.
 *
 * A new operation needs no line here unless it needs present pages.  Operations on files
 * are not measured; `ktask warm` prints its own figures.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "util/clock.h"

#define HUGE_BYTES (2ul << 20)

/* An entry without op measures the operation of its own name. */
static const struct kind {
	const char *name;
	const char *op;
	const char *summary;
	enum bench_pages pages;
	unsigned guest : 1, filled : 1, unmaps : 1;
	unsigned locked : 1;
	unsigned left_out : 1; /* wants more than memory */
} work_kinds[] = {
	{ .name = "vm-start",
	  .op = "lock",
	  .summary = "populate, then lock the memory of a guest",
	  .pages = PAGES_HUGE,
	  .guest = 1 },
	{ .name = "fill", .filled = 1 },
	{ .name = "discard", .filled = 1 },
	{ .name = "unmap", .filled = 1, .unmaps = 1 },
	{ .name = "unlock", .filled = 1, .locked = 1 },
	{ .name = "warm", .left_out = 1 },
};

#define NR_KINDS (sizeof(work_kinds) / sizeof(work_kinds[0]))

/* The scenes come first, then the operations in the library's order. */
static int scene_at(unsigned index, struct bench_work *work)
{
	for (size_t i = 0; i < NR_KINDS; i++) {
		if (!work_kinds[i].op || index--)
			continue;
		*work = (struct bench_work){
			.name = work_kinds[i].name,
			.summary = work_kinds[i].summary,
			.op = ktask_op_find(work_kinds[i].op),
			.pages = work_kinds[i].pages,
			.guest = work_kinds[i].guest,
			.filled = work_kinds[i].filled,
		};
		return work->op ? 0 : -ENOENT;
	}
	return -ENOENT;
}

static unsigned nr_scenes(void)
{
	unsigned nr = 0;

	for (size_t i = 0; i < NR_KINDS; i++)
		nr += work_kinds[i].op != NULL;
	return nr;
}

static const struct kind *kind_of(const struct ktask_op *op)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		if (!work_kinds[i].op &&
		    !strcmp(work_kinds[i].name, ktask_op_name(op)))
			return &work_kinds[i];
	return NULL;
}

const struct ktask_op *bench_op_at(unsigned index)
{
	const struct ktask_op *op;

	for (unsigned i = 0; (op = ktask_op_at(i)); i++) {
		const struct kind *kind = kind_of(op);

		if (!(kind && kind->left_out) && !index--)
			break;
	}
	return op;
}

int bench_work_at(unsigned index, struct bench_work *work)
{
	const struct ktask_op *op;
	const struct kind *kind;

	if (index < nr_scenes())
		return scene_at(index, work);
	op = bench_op_at(index - nr_scenes());
	if (!op)
		return -ENOENT;
	*work = (struct bench_work){ .name = ktask_op_name(op),
				     .summary = ktask_op_summary(op),
				     .op = op };
	kind = kind_of(op);
	if (kind) {
		work->filled = kind->filled;
		work->unmaps = kind->unmaps;
		work->locked = kind->locked;
	}
	return 0;
}

bool bench_work_find(const char *name, struct bench_work *work)
{
	for (unsigned i = 0; !bench_work_at(i, work); i++)
		if (!strcmp(work->name, name))
			return true;
	return false;
}

static void advise_kernel(const struct bench_work *work, void *addr, size_t len)
{
	/* Advice: where the kernel has no KSM or THP there is none to take. */
	if (work->pages == PAGES_HUGE)
		madvise(addr, len, MADV_HUGEPAGE);
	if (work->pages == PAGES_SMALL)
		madvise(addr, len, MADV_NOHUGEPAGE);
	if (work->guest) {
		madvise(addr, len, MADV_MERGEABLE);
		madvise(addr, len, MADV_DONTFORK);
	}
}

/* Aligned to a huge page, as allocators of big memory do. */
static void *map_range(const struct bench_work *work, size_t len)
{
	char *start;
	char *addr = mmap(NULL, len + HUGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (addr == MAP_FAILED)
		return NULL;
	start = addr + -(uintptr_t)addr % HUGE_BYTES;
	if (start > addr)
		munmap(addr, start - addr);
	munmap(start + len, addr + HUGE_BYTES - start);
	advise_kernel(work, start, len);
	return start;
}

/* A range with its pages present where the operation wants them so. */
static int prepare_range(const struct bench_work *work, size_t len, void **addr)
{
	int error = 0;

	*addr = map_range(work, len);
	if (!*addr)
		return -ENOMEM;
	if (work->filled)
		error = ktask_populate(*addr, len, 0);
	if (!error && work->locked)
		error = ktask_lock(*addr, len, 0);
	if (error)
		munmap(*addr, len);
	return error;
}

static int measure_job(const struct bench_work *work,
		       const struct ktask_op_args *args,
		       struct ktask_opts *opts, struct bench_sample *sample)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	double cpu, start;
	int error;

	opts->result = &result;
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	start = clock_seconds(CLOCK_MONOTONIC);
	error = ktask_op_run(work->op, args, opts);
	sample->seconds = clock_seconds(CLOCK_MONOTONIC) - start;
	sample->cpu_seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	sample->job_cpu_seconds = result.cpu_ns / 1e9;
	sample->threads = result.threads;
	opts->result = NULL;
	return error;
}

int bench_work_run(const struct bench_work *work, uint64_t size_bytes,
		   struct renewal *renewal, struct ktask_opts *opts,
		   struct bench_sample *sample, const char **doing)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .len = size_bytes };
	int error;

	*doing = "preparing memory";
	if (!work->filled)
		renew_free_memory(renewal, size_bytes);
	error = prepare_range(work, size_bytes, &args.addr);
	if (error)
		return error;
	*doing = ktask_op_name(work->op);
	error = measure_job(work, &args, opts, sample);
	if (error || !work->unmaps)
		munmap(args.addr, size_bytes);
	return error;
}
