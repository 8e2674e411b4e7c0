/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate: make all pages of a range present.
 *
 * Owns the choice between asking the kernel and touching.  Pages that were
 * made before a failure stay, as with the plain call, so there is no undo.
 *
 * The plain call stops at the first page that cannot be made.  If a mapping may have such
 * a page (a file may end, access may not be permitted), the memory behind that mapping
 * is a job of its own, done afterwards.
 *
 * Behaves badly on a range that is present already: each chunk still walks its pages
 * (50 ms per GiB of 4 KiB pages on one thread).
 *
 * Locking: none.  Any thread stores the kernel's answer, atomically; it is the same for
 * all threads.
 */
#include <errno.h>
#include <sys/mman.h>

#include "advise.h"
#include "device_job.h"
#include "fault.h"
#include "mapping.h"
#include "populate.h"

static int advice_of(const struct op_job *job)
{
	return job->flags & KTASK_POPULATE_READ ? MADV_POPULATE_READ
						: MADV_POPULATE_WRITE;
}

/*
 * The kernel knows the advice and the range is aligned.  So EINVAL only means a mapping
 * without the permission, or device memory.
 */
static int plain_error(int error)
{
	return error == -EINVAL ? -EFAULT : error;
}

int populate_chunk(void *start, void *end, void *arg)
{
	return plain_error(advise_chunk(arg, (uintptr_t)start, (uintptr_t)end,
					advice_of(arg), 0));
}

/*
 * Sanitizers must not see a touch: the memory is the program's, and other
 * threads may be writing to it.
 */
#define UNSEEN __attribute__((no_sanitize("address", "thread")))

UNSEEN static void touch_read(volatile unsigned char *byte)
{
	(void)*byte;
}

/*
 * Stores the byte's own value, atomically: other threads may be writing.  Compilers turn
 * "fetch_or(byte, 0)" into a fence and a load, which would make the page for reading only.
 */
UNSEEN static void touch_write(volatile unsigned char *byte)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("lock orb $0, %0" : "+m"(*byte) : : "cc");
#else
	unsigned char seen = *byte;

	/* If this fails another thread has written: the page is there. */
	__atomic_compare_exchange_n(byte, &seen, seen, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
#endif
}

struct touch {
	const struct op_job *job;
	uintptr_t start;
	uintptr_t end;
};

UNSEEN static void touch_pages(void *arg)
{
	const struct touch *touch = arg;
	uintptr_t step = touch->job->step_bytes, next;

	for (uintptr_t pos = touch->start; pos < touch->end; pos = next) {
		if (touch->job->flags & KTASK_POPULATE_READ)
			touch_read((volatile unsigned char *)pos);
		else
			touch_write((volatile unsigned char *)pos);
		next = (pos | (step - 1)) + 1;
		if (!next)
			break;
	}
}

int populate_touch_chunk(void *start, void *end, void *arg)
{
	struct touch touch = { arg, (uintptr_t)start, (uintptr_t)end };
	uintptr_t bad;
	int error =
		fault_guard(touch.start, touch.end, touch_pages, &touch, &bad);

	if (error)
		op_fail_at(touch.job, bad & ~(op_page_bytes() - 1));
	return error;
}

static bool must_touch(const struct op_job *job)
{
	/* 0 not asked, 1 the kernel has the call, 2 it has not. */
	static _Atomic int known;
	int answer = atomic_load_explicit(&known, memory_order_relaxed);

	if (job->flags & KTASK_POPULATE_TOUCH)
		return true;
	if (!answer) {
		answer = advise_known(MADV_POPULATE_WRITE) &&
					 advise_known(MADV_POPULATE_READ)
				 ? 1
				 : 2;
		atomic_store_explicit(&known, answer, memory_order_relaxed);
	}
	return answer == 2;
}

/* Mappings that are done together: [start, end) of the job so far. */
struct parts {
	struct op_job *job;
	ktask_thread_func chunk;
	uintptr_t start;
	uintptr_t end;
	int error;
};

static int populate_part(struct op_job *job, uintptr_t start, uintptr_t end,
			 ktask_thread_func chunk)
{
	return device_job_run_part(job, start, end, chunk,
				   !(job->flags & KTASK_POPULATE_READ));
}

static int run_one_part(struct parts *parts)
{
	if (parts->start < parts->end && !parts->error)
		parts->error = populate_part(parts->job, parts->start,
					     parts->end, parts->chunk);
	parts->start = parts->end;
	return parts->error;
}

static bool ends_early(const struct op_job *job, const struct mapping *mapping)
{
	bool permitted = job->flags & KTASK_POPULATE_READ ? mapping->readable
							  : mapping->writable;

	return mapping->file || !permitted;
}

static int add_mapping(const struct mapping *mapping, void *arg)
{
	struct parts *parts = arg;
	uintptr_t last = (uintptr_t)parts->job->addr + parts->job->len;
	bool alone = ends_early(parts->job, mapping);

	if (mapping->start > parts->end)
		return 1;
	if (alone && run_one_part(parts))
		return 1;
	parts->end = mapping->end < last ? mapping->end : last;
	return alone ? run_one_part(parts) : 0;
}

static int run_by_parts(struct op_job *job, ktask_thread_func chunk)
{
	uintptr_t start = (uintptr_t)job->addr, end = start + job->len;
	struct parts parts = { job, chunk, start, start, 0 };
	int error;

	if (op_is_small(job) || op_may_be_cancelled(job))
		return populate_part(job, start, end, chunk);
	error = mapping_each(start, end, MAPPING_CHEAP, add_mapping, &parts);
	/* If the list is incomplete, do all of the range together. */
	if (error < 0 && !parts.error)
		parts.end = end;
	error = run_one_part(&parts);
	if (!error && parts.end < end)
		error = op_fail(job, -ENOMEM, (void *)parts.end);
	return error;
}

static int populate_around(struct op_job *job)
{
	struct device_job device;
	unsigned token;
	int error;

	if (!must_touch(job)) {
		device_job_begin(&device, job);
		error = run_by_parts(job, populate_chunk);
		device_job_end(&device, job);
		return error;
	}
	error = fault_get(&token);
	if (error)
		return op_fail(job, error, job->addr);
	error = run_by_parts(job, populate_touch_chunk);
	fault_put(token);
	return error;
}

/*
 * min_chunk    32K   64K  128K  256K  512K    1M    2M    4M    8M   16M
 * 1 thread      21    39    76   149   293   590  1153  2329  4652  9204
 * 2 threads     30    45    80   118   213   382   640  1246  2549  4809
 *
 * 4 KiB pages; the columns are chunks, each job has two.  For huge pages see
 * mapping_first_page().
 */
const struct ktask_op op_populate = {
	.name = "populate",
	.summary = "make all pages of a range present",
	.min_chunk = 256 * KIB,
	.known_flags = KTASK_POPULATE_READ | KTASK_POPULATE_TOUCH,
	.makes_pages = true,
	.faults_only = true,
	.in_kernel = true,
	.align = mapping_align_range,
	.chunk = populate_chunk,
	.around = populate_around,
};
