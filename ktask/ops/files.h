/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Operations on files: many ranges of files as one job.
 *
 * Owns the lengths of the files, opening and closing them, their order in the one range
 * of work, and the error of each.  Does not own what is done with a range: that is the
 * operation's.
 *
 * The files are laid out one behind another, each rounded up to FILES_STEP, so
 * that chunk edges are aligned in every file and that a small file counts for
 * what opening it costs.  The job is over these positions; they are no addresses.
 */
#ifndef OPS_FILES_H
#define OPS_FILES_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "op.h"

#define FILES_STEP (64 * KIB)
/* Direct reads and writes begin and end on multiples of it. */
#define FILES_BLOCK 4096

struct files_buffers;

/** A file while somebody works on it. */
struct files_open {
	struct ktask_file *file;
	int fd;
	bool direct; /* past the page cache */
	const void *arg; /* of files_run_job() */
	struct files_buffers *buffers; /* one for all files of the job */
	/* Bytes of the range that were not there after all: the operation says. */
	uint64_t missed;
};

/*
 * Does the operation's work on [from, to) of a file, counted from file->offset.  On
 * failure it sets *fail_at to the first byte that failed, if that is not @from.  Several
 * threads call it at once.
 *
 * Return: 0 or -errno.
 */
typedef int (*files_range_func)(struct files_open *open, uint64_t from,
				uint64_t to, uint64_t *fail_at);

/**
 * files_run_job - call @range for parts of all files of @job
 * @arg: for @range, in struct files_open
 *
 * Return: 0; the error of the first file that failed, whose index is fail_range of the
 * result; -ECANCELED, -ETIMEDOUT.
 */
int files_run_job(struct op_job *job, files_range_func range, const void *arg);

/** files_align - the align step of operations on files */
void files_align(struct op_job *job);

/**
 * files_open - a file as KTASK_FILE_DIRECT says; to be closed with files_close()
 *
 * If the flags of the file's descriptor do not fit, it is opened anew.
 *
 * Return: 0 or -errno.
 */
int files_open(const struct op_job *job, struct ktask_file *file,
	       struct files_open *open);
void files_close(const struct files_open *open);

/** files_length - of a regular file or block device
 *
 * Return: 0, -EISDIR, -EINVAL, -errno.
 */
int files_length(int fd, uint64_t *len);

/**
 * files_read - pread(2), again where it was interrupted
 *
 * If direct I/O is refused, the page cache is used from then on.
 *
 * Return: bytes, 0 at the end, -errno.
 */
ssize_t files_read(const struct files_open *open, char *buf, size_t len,
		   uint64_t offset);

/** Memory for reading and writing, aligned to FILES_BLOCK. */
struct files_buffer {
	char *at;
	size_t len; /* a multiple of FILES_BLOCK */
};

typedef int (*files_buffer_func)(const struct files_buffer *buffer, void *arg);

/* The most slabs of a job, of two buffers each; further threads have no buffer. */
#define FILES_SLABS 32

/**
 * struct files_buffers - the buffers of a job, kept until its end
 *
 * @kept: set before the first buffer is used, by jobs that are worth a slab
 *
 * Locking: @lock protects what follows it.
 */
struct files_buffers {
	bool kept;
	pthread_mutex_t lock;
	unsigned nr_slabs;
	unsigned nr_free;
	char *area; /* of all slabs; NULL: each is mapped when it is needed */
	char *slabs[FILES_SLABS]; /* without an area */
	char *free[2 * FILES_SLABS];
};

void files_buffers_begin(struct files_buffers *buffers);

/**
 * files_buffers_map - map all that threads may want; by the caller of the job, before
 *
 * Otherwise helpers would.  That takes the lock of the process's mappings, and the program
 * would wait for a helper of the lowest priority that holds it.
 */
void files_buffers_map(struct files_buffers *buffers);

/** files_buffers_end - give the memory back; no thread may use a buffer any more */
void files_buffers_end(struct files_buffers *buffers);

/**
 * files_with_buffer - call @func with a buffer of 1 MiB, or with a single block
 *
 * The block is on the stack; otherwise little of the stack is used.  Any thread.
 *
 * Return: what @func does.
 */
int files_with_buffer(struct files_buffers *buffers, files_buffer_func func,
		      void *arg);

#endif /* OPS_FILES_H */
