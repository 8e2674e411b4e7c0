// SPDX-License-Identifier: GPL-2.0-only
/*
 * Populating a range of memory, and what all requests have in common.
 *
 * Locking: there is no lock.  A struct memory_job is on the stack of the thread that makes
 * the request; kernel/client/device_memory.h says who writes it.  process_us may change at
 * any time, as a parameter: READ_ONCE().
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "kernel/ktask_kernel.h"
#include "kernel/client/device_memory.h"

/* Chunks never cut a huge page. */
#define UNIT_BYTES PMD_SIZE
/* From PROCESS_BYTES on, a request may be worth making threads in the process.  From
 * LONG_BYTES on it always is, because a sample of one page of 1 GiB would take too long. */
#define PROCESS_BYTES (16ul << 20)
#define LONG_BYTES (1ul << 30)
/* The caller does this much alone, to estimate how long the request takes. */
#define SAMPLE_BYTES (64ul << 10)
/* Attempts at a page that is being read, without progress. */
#define TRIES_MAX 1000

static unsigned int process_us = 2000;
module_param(process_us, uint, 0644);
MODULE_PARM_DESC(process_us,
		 "requests of what is there that take one thread as long, in "
		 "microseconds, are helped by threads of the process");

void memory_failed(struct memory_job *job, unsigned long addr)
{
	unsigned long lowest = READ_ONCE(job->failed);

	while (addr < lowest && !try_cmpxchg(&job->failed, &lowest, addr))
		;
}

/*
 * Is the first page present, as the request needs it?  If not, the rest is taken to be absent
 * as well, and no sample is taken: its fault might clear a huge page before any helper has
 * begun.
 */
static bool first_is_present(const struct memory_job *job)
{
	struct page *page;

	if (get_user_pages_fast_only(job->addr, 1, job->gup_flags & FOLL_WRITE,
				     &page) != 1)
		return false;
	put_page(page);
	return true;
}

/*
 * Making threads in the process costs tens of microseconds.  16 MiB of memory that is
 * already present may take no longer than that, so parked kernel threads help with it.
 */
static int take_sample(const struct ktask_mem *request, struct memory_job *job,
		       int (*func)(void *start, void *end, void *arg),
		       bool *is_long)
{
	u64 long_ns = (u64)READ_ONCE(process_us) * NSEC_PER_USEC;
	u64 start_ns = ktime_get_ns();
	int error = func((void *)job->addr, (void *)(job->addr + SAMPLE_BYTES),
			 job);

	*is_long = ktime_get_ns() - start_ns >=
		   long_ns / (request->len / SAMPLE_BYTES);
	return error;
}

/* If the rest fails, the sample is undone as well. */
static int run_rest(struct memory_job *job, unsigned long done,
		    unsigned long len, const struct ktask_ctl *ctl)
{
	int error = ktask_run((void *)(job->addr + done), len - done, ctl);

	if (error && done && ctl->undo_func)
		ctl->undo_func((void *)job->addr, (void *)(job->addr + done),
			       job);
	return error;
}

int memory_run(struct ktask_mem *request, struct memory_job *job,
	       int (*func)(void *start, void *end, void *arg),
	       void (*undo)(void *start, void *end, void *arg))
{
	DEFINE_KTASK_CTL(ctl, func, job, UNIT_BYTES);
	bool is_long = request->len >= PROCESS_BYTES;
	struct ktask_result result = {};
	unsigned long done = 0;
	int error = 0;

	job->addr = request->addr;
	job->failed = ULONG_MAX;
	ktask_ctl_set_align(&ctl, UNIT_BYTES);
	ktask_ctl_set_undo_func(&ctl, undo);
	ktask_ctl_set_max_threads(&ctl, request->max_threads);
	ktask_ctl_set_killable(&ctl);
	ktask_ctl_set_result(&ctl, &result);
	/* Set also for another process's memory, which is allocated by the caller's policy. */
	ktask_ctl_set_caller_mm(&ctl);
	if (is_long && request->len < LONG_BYTES && request->max_threads != 1 &&
	    (job->mm || first_is_present(job))) {
		error = take_sample(request, job, func, &is_long);
		done = SAMPLE_BYTES;
		/* The first chunk ends where the first huge page does. */
		ctl.min_chunk_size = UNIT_BYTES - SAMPLE_BYTES;
	}
	if (is_long)
		ktask_ctl_set_caller_process(&ctl);
	if (!error)
		error = run_rest(job, done, request->len, &ctl);
	request->threads = max(result.threads, 1u);
	request->failed = error && job->failed != ULONG_MAX ? job->failed : 0;
	return error;
}

/* Without an array of pages faults are all that get_user_pages() does; it
 * then returns early where it had to wait for a page. */
static long fault_in(const struct memory_job *job, unsigned long addr,
		     unsigned long end)
{
	unsigned long left = (end - addr) >> PAGE_SHIFT;
	unsigned int flags = job->gup_flags, tries = 0;
	long nr;

	do {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (job->mm && !remote_in_use(job->mm))
			return -ESRCH;
		if (job->mm)
			nr = remote_fault_in(job->mm, addr, left, flags,
					     job->ahead);
		else
			nr = get_user_pages_unlocked(addr, left, NULL, flags);
		cond_resched();
	} while (!nr && ++tries < TRIES_MAX);
	return nr ? nr : -EFAULT;
}

static int populate_chunk(void *start, void *end, void *arg)
{
	struct memory_job *job = arg;
	unsigned long addr = (unsigned long)start;

	while (addr < (unsigned long)end) {
		long nr = fault_in(job, addr, (unsigned long)end);

		if (nr < 0) {
			memory_failed(job, addr);
			return (int)nr;
		}
		addr += (unsigned long)nr << PAGE_SHIFT;
	}
	return 0;
}

int memory_populate(struct ktask_mem *request)
{
	bool write = request->flags & KTASK_MEM_WRITE;
	struct memory_job job = { .gup_flags = write ? FOLL_WRITE : 0 };
	int error;

	if (!(request->flags & KTASK_MEM_FD))
		return memory_run(request, &job, populate_chunk, NULL);
	job.ahead = request->flags & KTASK_MEM_AHEAD;
	job.mm = remote_mm(request->fd, write);
	if (IS_ERR(job.mm))
		return PTR_ERR(job.mm);
	error = memory_run(request, &job, populate_chunk, NULL);
	remote_put(job.mm);
	return error;
}
