/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Engine: who does the large jobs of an operation, helpers of this process or
 * those of the kernel module (/dev/ktask).
 *
 * KTASK_ENGINE=kernel asks for the module; the default is this process.  Owns
 * that setting, and how many threads the kernel may use.  Whatever the device
 * refuses is done by the user engine, from its beginning, so that errors, the
 * first failing byte and what is left behind are those of that.
 *
 * Where it behaves badly: the kernel's helpers have caps of their own.  A request
 * gets no more threads than a job of this process would, less the helpers that
 * work for the user now, but jobs that begin while it runs do not see it.  The
 * CPU time of the kernel's helpers is not in the result.
 */
#ifndef OPS_ENGINE_H
#define OPS_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "op.h"

/* On the stack of a job's caller. */
struct engine {
	int fd; /* -1: the user engine alone */
	bool write; /* of the part that is done now */
	ktask_thread_func plain; /* of the same */
	unsigned max_threads; /* of a request */
	unsigned threads; /* most that worked on one */
};

/**
 * engine_begin - open the device for a job, if that is wanted
 *
 * A job that is not large, or has a fixed count of threads, opens no file.
 */
void engine_begin(struct engine *engine, struct op_job *job);

/** engine_end - the job is done; before its result is read */
void engine_end(struct engine *engine, struct op_job *job);

/**
 * engine_run_part - op_run_part() by the engine of the job
 * @chunk: the user engine's
 * @write: pages as if they were written to
 */
int engine_run_part(struct op_job *job, uintptr_t start, uintptr_t end,
		    ktask_thread_func chunk, bool write);

#endif /* OPS_ENGINE_H */
