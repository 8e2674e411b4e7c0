/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * unmap: munmap(2), with the pages given back in parallel beforehand.
 *
 * Pages may be given back only once it is certain that munmap() will succeed: it can be
 * refused (too many mappings, a sealed one), and must then have done nothing.  So the
 * head of a range that lies within one mapping is unmapped first.  The rest then begins
 * at the edge of a mapping, and unmapping it needs no additional mapping.  If the head is
 * refused, the plain call is made on the whole, and decides.
 *
 * Nothing is unmapped twice: another thread may map memory there meanwhile.
 *
 * 2 GiB, one thread and two, Linux 6.18: 4 KiB pages 128 and 68 ms; 2 MiB pages 4.8 and
 * 4.6.  Untouched memory is left to the plain call, which takes 2 us.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "advise.h"
#include "mapping.h"

#define NR_SAMPLES 16

/* Past the C library, whose name the preload shim takes over. */
static int call_munmap(uintptr_t start, uintptr_t end)
{
	return syscall(SYS_munmap, start, end - start) ? -errno : 0;
}

/* The state says afterwards whether it was done. */
static int unmap_chunk(void *start, void *end, void *arg)
{
	bool *done = ((const struct op_job *)arg)->state;
	int error = call_munmap((uintptr_t)start, (uintptr_t)end);

	*done = !error;
	return error;
}

/* Errors are ignored: munmap() gives back the rest. */
static int discard_chunk(void *start, void *end, void *arg)
{
	const int *advice = ((const struct op_job *)arg)->state;

	syscall(SYS_madvise, start, (char *)end - (char *)start, *advice);
	return 0;
}

/* Bytes that are present, from a few samples. */
static size_t guess_present(const struct op_job *job)
{
	size_t step = job->len / NR_SAMPLES, nr = 0;

	for (size_t i = 0; i < NR_SAMPLES; i++)
		nr += mapping_present(job->addr + i * step + step / 2);
	return nr * step;
}

struct cover {
	uintptr_t start;
	uintptr_t end;
	bool whole;
};

static int is_covered(const struct mapping *mapping, void *arg)
{
	struct cover *cover = arg;

	cover->whole =
		mapping->start <= cover->start && mapping->end >= cover->end;
	return 1;
}

static bool in_one_mapping(const struct op_job *job)
{
	uintptr_t start = (uintptr_t)job->addr;
	struct cover cover = { start, start + job->len, false };

	mapping_each(cover.start, cover.end, MAPPING_CHEAP, is_covered, &cover);
	return cover.whole;
}

static bool is_worthwhile(const struct op_job *job)
{
	return !op_is_small(job) &&
	       guess_present(job) / 2 >= job->op->min_chunk &&
	       in_one_mapping(job);
}

/* A deadline or the progress function ends only the parallel part. */
static int unmap_plainly(struct op_job *job)
{
	uintptr_t start = (uintptr_t)job->addr;
	bool done = false;
	int error;

	job->state = &done;
	error = op_run_whole(job, unmap_chunk);
	if (!error)
		return 0;
	if (!done && (error == -ECANCELED || error == -ETIMEDOUT)) {
		error = call_munmap(start, start + job->len);
		done = !error;
	}
	if (!done)
		return op_fail(job, error, job->addr);
	op_succeed(job);
	return 0;
}

static int unmap_rest(struct op_job *job, uintptr_t head_end)
{
	int advice = advise_known(MADV_DONTNEED_LOCKED) ? MADV_DONTNEED_LOCKED
							: MADV_DONTNEED;
	struct op_job rest = *job;
	int error;

	rest.addr = (char *)head_end;
	rest.len = job->len - (head_end - (uintptr_t)job->addr);
	rest.state = &advice;
	op_run_job(&rest, discard_chunk);
	error = call_munmap(head_end, head_end + rest.len);
	if (error)
		return op_fail(job, error, rest.addr);
	op_succeed(job);
	return 0;
}

static int unmap_around(struct op_job *job)
{
	uintptr_t start = (uintptr_t)job->addr, head_end;

	/* The head ends at an edge of a huge page, so that none is split. */
	head_end = (start | (job->align - 1)) + 1;
	if (!is_worthwhile(job) || call_munmap(start, head_end))
		return unmap_plainly(job);
	return unmap_rest(job, head_end);
}

/* min_chunk: as discard, which is what the chunks do. */
const struct ktask_op op_unmap = {
	.name = "unmap",
	.summary = "unmap a range, giving its pages back in parallel",
	.min_chunk = 32 * MIB,
	.align = mapping_align_range,
	.chunk = unmap_chunk,
	.around = unmap_around,
};
