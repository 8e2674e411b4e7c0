/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What all parts of ktask_uffd_fill() report: that the job fails, and its progress.
 */
#include "uffd_job.h"

int uffd_fail(struct uffd_job *uffd, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&uffd->error, &none, error);
	return error;
}

int uffd_tell_progress(struct uffd_job *uffd, unsigned threads)
{
	const struct ktask_opts *opts = uffd->program;
	struct ktask_progress progress = {
		.struct_size = sizeof(progress),
		.units_done = uffd->stream_pos,
		.units_total = uffd->job->len,
		.elapsed_ns = op_now_ns() - uffd->begin_ns,
		.threads = threads,
	};

	return opts->progress_func(&progress, opts->progress_arg);
}
