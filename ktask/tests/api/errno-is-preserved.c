/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every public call leaves errno as it was, whether it succeeds or fails, the
 * first time and later, whatever the chunks do to theirs.
 */
#include "support/work.h"

#define MARK 4242

static int spoil_errno(struct work *work, size_t from, size_t to)
{
	errno = EDOM;
	return work->arg ? -EIO : 0;
}

static void spoil_undo(void *start, void *end, void *arg)
{
	errno = ERANGE;
	work_undo(start, end, arg);
}

static int spoil_progress(const struct ktask_progress *progress, void *arg)
{
	errno = ENOTTY;
	return 0;
}

#define KEEPS(call)                                                        \
	do {                                                               \
		errno = MARK;                                              \
		(void)(call);                                              \
		if (errno != MARK)                                         \
			ktest_check_failed(#call " keeps errno", __FILE__, \
					   __LINE__);                      \
	} while (0)

static void check_runs(struct work *work)
{
	struct ktask_node nodes[12];
	struct ktask_ctl ctl = work_ctl(work, 1);
	struct ktask_ctl small = work_ctl(work, 1000);

	ktask_ctl_set_undo_func(&ctl, spoil_undo);
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(nodes); i++)
		nodes[i] =
			(struct ktask_node){ WORK_BASE + i * 10, 10, (int)i };
	KEEPS(ktask_run(WORK_BASE, 120, &ctl));
	KEEPS(ktask_run(WORK_BASE, 120, &small));
	KEEPS(ktask_run(WORK_BASE, 0, &ctl));
	KEEPS(ktask_run(WORK_BASE, 120, NULL));
	KEEPS(ktask_run_numa(nodes, 12, &ctl));
	KEEPS(ktask_run_numa(NULL, 12, &ctl));
	ktask_ctl_set_progress(&ctl, spoil_progress, NULL, 1);
	KEEPS(ktask_run(WORK_BASE, 120, &ctl));
	ktask_ctl_set_deadline(&ctl, 1);
	KEEPS(ktask_run(WORK_BASE, 120, &ctl));
}

static void check_starts(struct work *work)
{
	struct ktask_ctl ctl = work_ctl(work, 1);
	struct ktask_progress progress = KTASK_PROGRESS_INIT;
	struct ktask_job *job;

	KEEPS(ktask_start(&job, WORK_BASE, 120, &ctl));
	KEEPS(ktask_poll(job, &progress));
	KEEPS(ktask_cancel(job));
	KEEPS(ktask_wait(job));
	KEEPS(ktask_start(&job, WORK_BASE, 120, NULL));
	KEEPS(ktask_wait(NULL));
	KEEPS(ktask_poll(NULL, NULL));
	KEEPS(ktask_cancel(NULL));
}

static void check_queries(void)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	struct ktask_job_info jobs[8] = { KTASK_JOB_INFO_INIT };
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;

	KEEPS(ktask_limits(limits, 32));
	KEEPS(ktask_limits(NULL, 0));
	KEEPS(ktask_jobs(jobs, 8, &permits));
	KEEPS(ktask_jobs(NULL, 0, NULL));
	KEEPS(ktask_version());
	KEEPS(ktask_fail_at(WORK_BASE));
	KEEPS(ktask_iter_range(WORK_BASE, 1));
	KEEPS(ktask_trim());
	KEEPS(ktask_trim());
}

enum first { RUN, START, QUERY, TRIM };

/* The first call of all reads files and makes threads. */
static int all_calls(void *first)
{
	struct work work = { .also = spoil_errno };

	work_begin(&work, 1000);
	if ((uintptr_t)first == START)
		check_starts(&work);
	if ((uintptr_t)first == QUERY)
		check_queries();
	if ((uintptr_t)first == TRIM)
		KEEPS(ktask_trim());
	for (int i = 0; i < 3; i++) {
		check_runs(&work);
		check_starts(&work);
		check_queries();
		work.arg = &work; /* now every chunk fails */
	}
	work_end(&work);
	return 0;
}

static void every_call_keeps_errno(void **state)
{
	for (uintptr_t first = RUN; first <= TRIM; first++)
		assert_int_equal(ktest_in_child(all_calls, (void *)first), 0);
}

KTEST_MAIN(KTEST(every_call_keeps_errno))
