/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Many ranges of files as one job: see files.h.
 *
 * Two jobs of one name run one after another.  The first finds the length of each file;
 * for a single file that is a plain call.  The second works on the ranges.
 *
 * Locking:
 *
 *	L: files.lock, which protects error and fail_offset of each file while a job
 *	   runs
 *	A: atomic; of any thread
 *
 * Other fields are the caller's and constant while a job runs.  Exceptions are the size of
 * a file, in the first job, and late: the one thread that works on the file writes them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "file_layout.h"
#include "files.h"

/* Positions begin here: 0 is no position that could be told. */
#define BASE FILES_STEP
/* Finding the length of a file takes some 10 us, and much longer if it is not cached. */
#define MIN_INSPECTED 16

/* A file that one thread does alone is done in parts of so much: 5 to 60 ms. */
#define WHOLE_STEP (64 * MIB)

/* Jobs of so much keep their buffers, which are made 2 MiB at a time. */
#define KEEP_LEAST (8 * MIB)

/* How many small files one thread requests from a disk at once. */
#define NR_PIECES 16

struct files;

/* Return: 0 or -errno.  Called by several threads at once. */
typedef int (*each_func)(struct files *files, struct files_open *open);

struct files {
	struct op_job *job;
	files_range_func range;
	const void *arg;
	each_func each;
	bool again; /* only files that found no descriptor, by one thread, */
	bool late; /* for which the deadline came in the middle of one */
	pthread_mutex_t lock; /* L */
	struct files_buffers buffers;
	_Atomic uint64_t bytes; /* A: that were done */
	uint64_t told; /* to the caller's progress function */
	uint64_t told_total;
	struct file_layout layout; /* of the job by ranges */
};

/* ---- errors ---- */

static bool has_failed(struct files *files, const struct ktask_file *file)
{
	bool failed;

	pthread_mutex_lock(&files->lock);
	failed = file->error;
	pthread_mutex_unlock(&files->lock);
	return failed;
}

/* The lowest position of a file counts. */
static void note_error(struct files *files, struct ktask_file *file, int error,
		       uint64_t offset)
{
	pthread_mutex_lock(&files->lock);
	if (!file->error || offset < file->fail_offset) {
		file->error = error;
		file->fail_offset = offset;
	}
	pthread_mutex_unlock(&files->lock);
}

static int open_for(struct files *files, struct ktask_file *file,
		    struct files_open *open)
{
	int error = files_open(files->job, file, open);

	open->arg = files->arg;
	open->buffers = &files->buffers;
	return error;
}

/* ---- jobs by files ---- */

/* A file for which there was no descriptor may get one now: see run_again(). */
static bool is_wanted(struct files *files, struct ktask_file *file)
{
	if (!files->again)
		return !has_failed(files, file);
	if (file->error != -EMFILE)
		return false;
	file->error = 0;
	file->fail_offset = 0;
	return true;
}

static int each_chunk(void *start, void *end, void *arg)
{
	struct files *files = ((struct op_job *)arg)->state;
	size_t first = (uintptr_t)start - BASE, last = (uintptr_t)end - BASE;

	for (size_t i = first; i < last; i++) {
		struct ktask_file *file = op_file(files->job, i);
		struct files_open open;
		int error;

		if (!is_wanted(files, file))
			continue;
		error = open_for(files, file, &open);
		if (!error) {
			error = files->each(files, &open);
			files_close(&open);
		}
		if (error)
			note_error(files, file, error, file->offset);
		if (files->late)
			return -ETIMEDOUT;
	}
	return 0;
}

/* Files are no bytes: what is told stands still meanwhile. */
static int report_progress(const struct ktask_progress *progress, void *arg)
{
	const struct files *files = arg;
	const struct ktask_opts *opts = files->job->opts;
	struct ktask_progress said = *progress;

	said.units_done = files->told;
	said.units_total = files->told_total;
	said.remaining_ns = 0;
	return opts->progress_func(&said, opts->progress_arg);
}

static void add_cost(struct ktask_result *sum, const struct ktask_result *part)
{
	if (part->threads > sum->threads)
		sum->threads = part->threads;
	sum->helpers_lent += part->helpers_lent;
	sum->wall_ns += part->wall_ns;
	sum->cpu_ns += part->cpu_ns;
}

static int run_by_files(struct files *files, struct ktask_result *cost)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct op_job job = *files->job;
	struct ktask_opts opts = *job.opts;
	int error;

	job.addr = (char *)BASE;
	job.len = job.nr_files;
	job.min_chunk = MIN_INSPECTED;
	job.align = 1;
	job.result = &result;
	job.state = files;
	job.opts = &opts;
	if (files->again)
		opts.max_threads = 1;
	if (opts.progress_func) {
		opts.progress_func = report_progress;
		opts.progress_arg = files;
	}
	error = op_run_job(&job, each_chunk);
	add_cost(cost, &result);
	return error;
}

/*
 * Several threads may together need more descriptors than the process may have.  So the
 * caller alone tries again the files that failed with EMFILE.
 */
static int run_again(struct files *files, each_func each,
		     struct ktask_result *cost)
{
	size_t i = 0;
	int error;

	while (i < files->job->nr_files &&
	       op_file(files->job, i)->error != -EMFILE)
		i++;
	if (i == files->job->nr_files)
		return 0;
	files->each = each;
	files->again = true;
	error = run_by_files(files, cost);
	files->again = false;
	return error;
}

static int run_each(struct files *files, each_func each,
		    struct ktask_result *cost)
{
	int error;

	files->each = each;
	error = run_by_files(files, cost);
	return error ? error : run_again(files, each, cost);
}

/* ---- the job by ranges ---- */

static int inspect_file(struct files *files, struct files_open *open)
{
	struct ktask_file *file = open->file;
	uint64_t len;
	int error = files_length(open->fd, &len);

	if (error)
		return error;
	len = len > file->offset ? len - file->offset : 0;
	file->size = file->len < len ? file->len : len;
	return 0;
}

/* The same all the time, also when the file fails in the middle. */
static uint64_t round_size(const struct ktask_file *file)
{
	return (file->size + FILES_STEP - 1) & ~(uint64_t)(FILES_STEP - 1);
}

static uint64_t size_at(const void *arg, size_t index)
{
	return round_size(op_file(arg, index));
}

/* Return: false where positions do not suffice for so much. */
static bool lay_out(struct files *files)
{
	struct op_job *job = files->job;
	uint64_t end;

	for (size_t i = 0; i < job->nr_files; i++)
		if (op_file(job, i)->error)
			op_file(job, i)->size = 0;
	if (!file_layout_begin(&files->layout, job->nr_files, size_at, job,
			       BASE, SIZE_MAX - FILES_STEP, &end))
		return false;
	job->addr = (char *)BASE;
	job->len = (size_t)(end - BASE);
	return true;
}

static int first_error(struct op_job *job)
{
	char *begin = job->addr;

	for (size_t i = 0; i < job->nr_files; i++) {
		const struct ktask_file *file = op_file(job, i);

		if (!file->error) {
			begin += round_size(file);
			continue;
		}
		op_fail(job, file->error,
			begin + (file->fail_offset - file->offset));
		if (job->result)
			job->result->fail_range = i;
		return file->error;
	}
	return 0;
}

/* A range of a file that is open. */
struct piece {
	struct files_open open;
	uint64_t from;
	uint64_t to;
};

/* Pieces of a chunk, begun together. */
struct pieces {
	struct files *files;
	bool prefetch;
	unsigned nr;
	struct piece at[NR_PIECES];
};

static int do_range(struct files *files, struct files_open *open, uint64_t from,
		    uint64_t to)
{
	uint64_t fail_at = from;
	int error;

	open->missed = 0;
	error = files->range(open, from, to, &fail_at);
	if (error)
		note_error(files, open->file, error,
			   open->file->offset + fail_at);
	else
		atomic_fetch_add(&files->bytes, to - from - open->missed);
	return error;
}

static void finish_pieces(struct pieces *pieces)
{
	for (unsigned i = 0; i < pieces->nr; i++) {
		struct piece *piece = &pieces->at[i];

		do_range(pieces->files, &piece->open, piece->from, piece->to);
		files_close(&piece->open);
	}
	pieces->nr = 0;
}

static int open_piece(struct pieces *pieces, struct ktask_file *file)
{
	int error = open_for(pieces->files, file, &pieces->at[pieces->nr].open);

	/* Without descriptors for several files, continue with one at a time. */
	if (error == -EMFILE && pieces->nr) {
		finish_pieces(pieces);
		error = open_for(pieces->files, file, &pieces->at[0].open);
	}
	return error;
}

static void begin_piece(struct pieces *pieces, struct ktask_file *file,
			uint64_t from, uint64_t to)
{
	struct piece *piece;
	int error;

	if (to > file->size)
		to = file->size;
	if (from >= to || has_failed(pieces->files, file))
		return;
	if (pieces->nr == NR_PIECES)
		finish_pieces(pieces);
	error = open_piece(pieces, file);
	if (error) {
		note_error(pieces->files, file, error, file->offset + from);
		return;
	}
	piece = &pieces->at[pieces->nr++];
	piece->from = from;
	piece->to = to;
	if (pieces->prefetch && !piece->open.direct)
		posix_fadvise(piece->open.fd, (off_t)(file->offset + from),
			      (off_t)(to - from), POSIX_FADV_WILLNEED);
}

static int range_chunk(void *start, void *end, void *arg)
{
	struct op_job *job = arg;
	struct files *files = job->state;
	struct pieces pieces = { .files = files };
	uint64_t pos = (uintptr_t)start, last = (uintptr_t)end, begin;
	size_t i = file_layout_find(&files->layout, pos, &begin);

	/* Within a single file the kernel reads ahead by itself. */
	pieces.prefetch = round_size(op_file(job, i)) < last - pos;
	while (pos < last && i < job->nr_files) {
		struct ktask_file *file = op_file(job, i++);
		uint64_t next = begin + round_size(file);
		uint64_t to = next < last ? next : last;

		if (to > pos) {
			begin_piece(&pieces, file, pos - begin, to - begin);
			pos = to;
		}
		begin = next;
	}
	finish_pieces(&pieces);
	return 0;
}

/* All of a file, of which a part may have been done. */
static int do_whole(struct files *files, struct files_open *open)
{
	struct ktask_file *file = open->file;
	uint64_t from = 0, to;
	int error = 0;

	for (; !error && from < file->size && !files->late; from = to) {
		to = file->size - from < WHOLE_STEP ? file->size
						    : from + WHOLE_STEP;
		error = do_range(files, open, from, to);
		files->late = to < file->size && op_is_late(files->job);
	}
	return 0;
}

static uint64_t bytes_done(struct files *files)
{
	uint64_t all = 0, done = atomic_load(&files->bytes);

	for (size_t i = 0; i < files->job->nr_files; i++)
		all += op_file(files->job, i)->size;
	return done < all ? done : all;
}

static int run_by_ranges(struct files *files, struct ktask_result *cost)
{
	struct op_job *job = files->job;
	struct ktask_result *result = job->result;
	int error = 0;

	if (!lay_out(files))
		return -EFBIG;
	files->buffers.kept = job->len >= KEEP_LEAST;
	if (files->buffers.kept && job->flags & KTASK_FILE_DIRECT)
		files_buffers_map(&files->buffers);
	error = op_run_job(job, range_chunk);
	file_layout_end(&files->layout);
	files->told_total = files->told = job->len;
	if (result)
		add_cost(cost, result);
	return error ? error : run_again(files, do_whole, cost);
}

static void reset_files(struct op_job *job)
{
	for (size_t i = 0; i < job->nr_files; i++) {
		struct ktask_file *file = op_file(job, i);

		file->error = 0;
		file->fail_offset = 0;
		file->size = 0;
	}
}

int files_run_job(struct op_job *job, files_range_func range, const void *arg)
{
	struct files files = { .job = job,
			       .range = range,
			       .arg = arg,
			       .lock = PTHREAD_MUTEX_INITIALIZER };
	struct ktask_result cost = KTASK_RESULT_INIT;
	struct ktask_result *result = job->result;
	int error;

	reset_files(job);
	files_buffers_begin(&files.buffers);
	job->state = &files;
	error = run_each(&files, inspect_file, &cost);
	if (!error)
		error = run_by_ranges(&files, &cost);
	files_buffers_end(&files.buffers);
	if (result) {
		result->error = error;
		result->threads = cost.threads;
		result->helpers_lent = cost.helpers_lent;
		result->wall_ns = cost.wall_ns;
		result->cpu_ns = cost.cpu_ns;
		result->units = bytes_done(&files);
	}
	return error ? error : first_error(job);
}

void files_align(struct op_job *job)
{
	job->align = FILES_STEP;
	job->step_bytes = FILES_BLOCK;
}
