/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A long job of many threads begins with its caller alone, but not if it says that it
 * blocks: while the caller is blocked nobody would take the next step.
 */
#define MANY_CPUS 24
#include "support/many_cpus.h"

#include "support/work.h"

#include "jobs.h"

#include "user/user_job.h"

#define NR_UNITS (MANY_CPUS * KT_TUNE_PROBE_CHUNKS)

enum beginning { UNKNOWN, WITH_RAMP, WITHOUT_RAMP };

/* As the caller sees it in its first chunk. */
static int note_beginning(void *start, void *end, void *arg)
{
	const struct user_job *job = job_current()->job;
	enum beginning *beginning = arg;

	if (job_current()->worker == &job->ctx.caller && *beginning == UNKNOWN)
		*beginning = job->ctx.ramping ? WITH_RAMP : WITHOUT_RAMP;
	return 0;
}

static enum beginning begin_with(unsigned flags)
{
	enum beginning beginning = UNKNOWN;
	DEFINE_KTASK_CTL(ctl, note_beginning, &beginning, 1);

	ctl.flags = flags;
	/* A helper may be so quick that nothing is left for the caller. */
	for (int i = 0; i < 1000 && beginning == UNKNOWN; i++)
		assert_int_equal(ktask_run(NULL, NR_UNITS, &ctl), 0);
	return beginning;
}

static void blocking_jobs_have_none(void **state)
{
	if (job_threads() < KT_TUNE_RAMP_THREADS)
		ktest_skip("a job gets %u threads here", job_threads());
	need_sure_helper();
	assert_int_equal(begin_with(0), WITH_RAMP);
	assert_int_equal(begin_with(KTASK_BLOCKS), WITHOUT_RAMP);
}

KTEST_MAIN(KTEST(blocking_jobs_have_none))
