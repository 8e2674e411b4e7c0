/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One call of ktask_uffd_fill(), as its parts see it.
 */
#ifndef OPS_UFFD_JOB_H
#define OPS_UFFD_JOB_H

#include <ktask/uffd.h>

#include "files.h"
#include "lent_lock.h"
#include "op.h"

/**
 * struct uffd_job - on the stack of the caller
 *
 * Locking: "S" fields are protected by stream_lock.  Any thread writes atomic fields; the
 * rest is only read while the job runs.
 */
struct uffd_job {
	const struct ktask_uffd_ctl *fill;
	const struct op_job *job;
	const struct ktask_opts *program; /* its own, not those of the job */
	size_t page_bytes;
	uint64_t begin_ns;
	pthread_t caller;
	uint64_t report_every_ns;
	struct lent_lock stream_lock;
	_Atomic uint64_t stream_pos; /* S: whole pages that were read */
	char *page; /* S: of a stream, the page that has come in part */
	size_t in_page; /* S: bytes of it */
	uint64_t report_ns; /* S: when the caller tells progress next */
	struct files_buffers buffers;
	_Atomic uint64_t spent_ns; /* CPU time of all threads */
	_Atomic uint64_t attended_ns; /* until then the caller serves faults */
	_Atomic uint64_t
		faulted_ns; /* when a fault was served last; 0: never */
	_Atomic int error; /* the first; others end at once */
};

/** uffd_fail - note that the job fails; Return: @error */
int uffd_fail(struct uffd_job *uffd, int error);

/** uffd_tell_progress - of a stream, in the caller; Return: what the program says */
int uffd_tell_progress(struct uffd_job *uffd, unsigned threads);

/** uffd_source_read - @len bytes from @offset on, not of a stream
 * @came: set to how many came, all of them if there is no error
 *
 * Return: 0; -ENODATA; as read(2); what the program's function returned.
 */
int uffd_source_read(const struct uffd_job *uffd, char *buf, size_t len,
		     uint64_t offset, size_t *came);

/* To a helper: the stream has stalled.  No errno, which copying has of its own. */
#define UFFD_STALLED 1

/**
 * uffd_source_next - the next pages of a stream, by one thread at a time
 * @len: at most so many bytes
 * @offset: set to where they belong
 * @came: set to how many came, whole pages
 *
 * Return: 0: @len bytes, or the rest of the stream; UFFD_STALLED in a helper; -ENODATA;
 * -ETIMEDOUT; -ECANCELED; as read(2).
 */
int uffd_source_next(struct uffd_job *uffd, char *buf, size_t len,
		     uint64_t *offset, size_t *came);

/**
 * uffd_copy - make the pages of [offset, offset + len) that are missing
 * @failed: set to the first that could not be made
 */
int uffd_copy(struct uffd_job *uffd, const char *buf, uint64_t offset,
	      size_t len, uint64_t *failed);

/**
 * uffd_serve - make the pages that pending faults wait for
 * @buffer: for their contents
 * @failed: as of uffd_copy()
 *
 * Context: never waits, but for the source.
 */
int uffd_serve(struct uffd_job *uffd, const struct files_buffer *buffer,
	       uint64_t *failed);

#endif /* OPS_UFFD_JOB_H */
