/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Large jobs of an operation by the kernel module (/dev/ktask), if the user asks for
 * it; else by helpers of this process.
 *
 * KTASK_ENGINE=kernel asks for the module; the default is this process.  Owns that
 * setting, and how many threads the kernel may use.  If the device refuses a request,
 * this process does all of it again.  So errors, the first failing byte and the state
 * after a failure are the same as without the device.
 *
 * Behaves badly: the kernel's helpers have caps of their own.  A request gets as many
 * threads as a job of this process would, less the helpers that work for the user at that
 * moment.  But jobs that begin while it runs do not see it.  The CPU time of the kernel's
 * helpers is not in the result.
 */
#ifndef OPS_DEVICE_JOB_H
#define OPS_DEVICE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "op.h"

/* On the stack of a job's caller. */
struct device_job {
	int fd; /* -1: this process does all */
	bool write; /* of the part that is done now */
	ktask_thread_func plain; /* of the same */
	unsigned max_threads; /* of a request */
	unsigned threads; /* most that worked on one */
};

/**
 * device_job_begin - open the device for a job, if the user asks for it
 *
 * A job that is not large, or has a fixed number of threads, does not open it.
 */
void device_job_begin(struct device_job *device, struct op_job *job);

/** device_job_end - the job is done; before its result is read */
void device_job_end(struct device_job *device, struct op_job *job);

/**
 * device_job_run_part - op_run_part() by the device, if the job has it
 * @chunk: does the part in this process
 * @write: make pages as if they were written to
 */
int device_job_run_part(struct op_job *job, uintptr_t start, uintptr_t end,
			ktask_thread_func chunk, bool write);

#endif /* OPS_DEVICE_JOB_H */
