/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Many ranges of files as one job: see files.h.
 *
 * Three jobs of one name, one after another: look at the files, work on their
 * ranges, finish them.  The first and the last are by files; of a single file
 * they are plain calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "files.h"

/* Positions begin here: 0 is no position that could be told. */
#define BASE FILES_STEP
/* Looking at a file takes some 10 us, and much longer if it is not cached. */
#define MIN_FILES 16

struct files {
	struct op_job *job;
	const struct files_work *work;
	files_func each;
	pthread_mutex_t lock; /* for errors of files */
	_Atomic uint64_t bytes; /* that were done */
	uint64_t told; /* to the caller's progress function */
	uint64_t told_total;
};

/* ---- one file ---- */

/* Of a descriptor: its flags and its position stay the caller's. */
static int open_one(const char *path, int fd, int flags)
{
	char self[32];
	int got;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	got = open(path ? path : self, flags | O_CLOEXEC);
	return got < 0 ? -errno : got;
}

/*
 * @own: one of our own is wanted; set to whether it is, as a path's always is.
 *
 * Return: a descriptor, or -errno.
 */
static int open_as(const char *path, int fd, int flags, bool *direct, bool *own)
{
	int got = -1;

	if (*direct)
		got = open_one(path, fd, flags | O_DIRECT);
	*direct = got >= 0;
	if (got < 0 && (path || *own))
		got = open_one(path, fd, flags);
	*own = path || got >= 0;
	if (*own)
		return got;
	return fd < 0 ? -EBADF : fd;
}

static void close_one(const char *path, int own_fd, int fd)
{
	if (own_fd >= 0 && (path || own_fd != fd))
		close(own_fd);
}

static void close_file(const struct files_open *open)
{
	const struct ktask_file *file = open->file;

	close_one(file->path, open->fd, file->fd);
	close_one(file->dst_path, open->dst_fd, file->dst_fd);
}

/* Directly, blocks of both must lie alike. */
static bool wants_direct(const struct files *files,
			 const struct ktask_file *file)
{
	if (!files->work->may_direct ||
	    !(files->job->flags & KTASK_FILE_DIRECT))
		return false;
	return !files->work->writes ||
	       !((file->offset | file->dst_offset) % FILES_BLOCK);
}

static int open_file(const struct files *files, struct ktask_file *file,
		     struct files_open *open)
{
	bool direct = wants_direct(files, file);
	bool dst_direct = direct, dst_own = false;

	*open = (struct files_open){ .file = file,
				     .dst_fd = -1,
				     .own = files->work->writes,
				     .arg = files->work->arg };
	open->fd = open_as(file->path, file->fd, O_RDONLY, &direct, &open->own);
	if (open->fd < 0 || !files->work->writes)
		goto out;
	open->dst_fd = open_as(file->dst_path, file->dst_fd, O_WRONLY,
			       &dst_direct, &dst_own);
	if (open->dst_fd < 0) {
		close_one(file->path, open->fd, file->fd);
		return open->dst_fd;
	}
	/* Both or none. */
	if (direct && !dst_direct)
		files_undirect(open->fd);
	if (!direct && dst_direct)
		files_undirect(open->dst_fd);
	direct = direct && dst_direct;
out:
	open->direct = direct;
	return open->fd < 0 ? open->fd : 0;
}

static int length_of(int fd, bool folders, uint64_t *len)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	if (S_ISBLK(stat.st_mode))
		return ioctl(fd, BLKGETSIZE64, len) ? -errno : 0;
	*len = 0;
	if (S_ISDIR(stat.st_mode))
		return folders ? 0 : -EISDIR;
	if (!S_ISREG(stat.st_mode))
		return -EINVAL;
	*len = (uint64_t)stat.st_size;
	return 0;
}

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

static int first_error(struct op_job *job)
{
	for (size_t i = 0; i < job->nr_files; i++) {
		const struct ktask_file *file = &job->files[i];
		uint64_t at = file->fail_offset - file->offset;

		if (!file->error)
			continue;
		op_fail(job, file->error,
			job->addr + (file->private_pos - BASE) + at);
		if (job->result)
			job->result->fail_range = i;
		return file->error;
	}
	return 0;
}

/* ---- jobs by files ---- */

static int each_chunk(void *start, void *end, void *arg)
{
	struct files *files = ((struct op_job *)arg)->state;
	size_t first = (uintptr_t)start - BASE, last = (uintptr_t)end - BASE;

	for (size_t i = first; i < last; i++) {
		struct ktask_file *file = &files->job->files[i];
		struct files_open open;
		int error;

		if (has_failed(files, file))
			continue;
		error = open_file(files, file, &open);
		if (!error) {
			error = files->each(files->job, &open);
			close_file(&open);
		}
		if (error)
			note_error(files, file, error, file->offset);
	}
	return 0;
}

/* Files are no bytes: what is told stands still meanwhile. */
static int tell(const struct ktask_progress *progress, void *arg)
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

static int go_by_files(struct files *files, struct ktask_result *cost)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct op_job job = *files->job;
	struct ktask_opts opts = *job.opts;
	int error;

	job.addr = (char *)BASE;
	job.len = job.nr_files;
	job.min_chunk = MIN_FILES;
	job.align = 1;
	job.result = &result;
	job.state = files;
	job.opts = &opts;
	if (opts.progress_func) {
		opts.progress_func = tell;
		opts.progress_arg = files;
	}
	error = op_go(&job, each_chunk);
	add_cost(cost, &result);
	return error;
}

/* ---- the job by ranges ---- */

static int look_at(const struct op_job *job, struct files_open *open)
{
	const struct files *files = job->state;
	struct ktask_file *file = open->file;
	uint64_t len;
	int error = length_of(open->fd, files->work->folders, &len);

	if (error)
		return error;
	len = len > file->offset ? len - file->offset : 0;
	file->size = file->len < len ? file->len : len;
	return files->work->prepare ? files->work->prepare(job, open) : 0;
}

static uint64_t rounded(const struct ktask_file *file)
{
	uint64_t size = file->error ? 0 : file->size;

	return (size + FILES_STEP - 1) & ~(uint64_t)(FILES_STEP - 1);
}

/* Return: false where positions do not suffice for so much. */
static bool lay_out(struct op_job *job)
{
	uint64_t pos = BASE;

	for (size_t i = 0; i < job->nr_files; i++) {
		struct ktask_file *file = &job->files[i];

		file->private_pos = pos;
		if (rounded(file) > SIZE_MAX - FILES_STEP - pos)
			return false;
		pos += rounded(file);
	}
	job->addr = (char *)BASE;
	job->len = (size_t)(pos - BASE);
	return true;
}

/* The last file that begins at @pos or before it. */
static size_t file_at(const struct op_job *job, uint64_t pos)
{
	size_t first = 0, last = job->nr_files;

	while (last - first > 1) {
		size_t middle = first + (last - first) / 2;

		if (job->files[middle].private_pos <= pos)
			first = middle;
		else
			last = middle;
	}
	return first;
}

static void do_range(struct files *files, struct ktask_file *file,
		     uint64_t from, uint64_t to)
{
	uint64_t fail_at = from;
	struct files_open open;
	int error;

	if (to > file->size)
		to = file->size;
	if (from >= to || has_failed(files, file))
		return;
	error = open_file(files, file, &open);
	if (!error) {
		error = files->work->range(files->job, &open, from, to,
					   &fail_at);
		close_file(&open);
	}
	if (error)
		note_error(files, file, error, file->offset + fail_at);
	else
		atomic_fetch_add(&files->bytes, to - from);
}

static int range_chunk(void *start, void *end, void *arg)
{
	struct op_job *job = arg;
	uint64_t pos = (uintptr_t)start, last = (uintptr_t)end;
	size_t i = file_at(job, pos);

	while (pos < last && i < job->nr_files) {
		struct ktask_file *file = &job->files[i++];
		uint64_t next = file->private_pos + rounded(file);

		if (next > last)
			next = last;
		if (next <= pos)
			continue;
		do_range(job->state, file, pos - file->private_pos,
			 next - file->private_pos);
		pos = next;
	}
	return 0;
}

static int go_by_ranges(struct files *files, struct ktask_result *cost)
{
	struct op_job *job = files->job;
	struct ktask_result *result = job->result;
	int error = 0;

	if (!lay_out(job))
		return -EFBIG;
	if (files->work->range && job->len)
		error = op_go(job, range_chunk);
	files->told_total = files->told = job->len;
	if (result)
		add_cost(cost, result);
	return error;
}

static void begin(struct op_job *job)
{
	for (size_t i = 0; i < job->nr_files; i++) {
		job->files[i].error = 0;
		job->files[i].fail_offset = 0;
		job->files[i].size = 0;
		job->files[i].private_pos = BASE;
	}
}

static int go(struct files *files, struct ktask_result *cost)
{
	int error;

	files->each = look_at;
	error = go_by_files(files, cost);
	if (!error)
		error = go_by_ranges(files, cost);
	if (error || !files->work->finish)
		return error;
	files->each = files->work->finish;
	return go_by_files(files, cost);
}

int files_go(struct op_job *job, const struct files_work *work)
{
	struct files files = { .job = job,
			       .work = work,
			       .lock = PTHREAD_MUTEX_INITIALIZER };
	struct ktask_result cost = KTASK_RESULT_INIT;
	struct ktask_result *result = job->result;
	int error;

	begin(job);
	job->state = &files;
	error = go(&files, &cost);
	if (result) {
		result->error = error;
		result->threads = cost.threads;
		result->helpers_lent = cost.helpers_lent;
		result->wall_ns = cost.wall_ns;
		result->cpu_ns = cost.cpu_ns;
		result->units = atomic_load(&files.bytes);
	}
	return error ? error : first_error(job);
}

void files_align(struct op_job *job)
{
	job->align = FILES_STEP;
	job->step_bytes = FILES_BLOCK;
}

/* ---- reading ---- */

void files_undirect(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

ssize_t files_read(const struct files_open *open, char *buf, size_t len,
		   uint64_t offset)
{
	bool direct = open->direct;
	ssize_t got;

	for (;;) {
		got = pread(open->fd, buf, len, (off_t)offset);
		if (got >= 0)
			return got;
		if (errno == EINVAL && direct)
			files_undirect(open->fd);
		else if (errno != EINTR)
			return -errno;
		direct = direct && errno != EINVAL;
	}
}

void files_buffer_get(struct files_buffer *buffer, char *small)
{
	buffer->len = FILES_BUFFER;
	buffer->allocated = malloc(FILES_BUFFER + FILES_BLOCK);
	buffer->at = buffer->allocated;
	if (!buffer->at) {
		buffer->at = small;
		buffer->len = FILES_BUFFER_SMALL;
	}
	buffer->at += -(uintptr_t)buffer->at & (FILES_BLOCK - 1);
	if (!buffer->allocated)
		buffer->len -= FILES_BLOCK;
}

void files_buffer_put(struct files_buffer *buffer)
{
	free(buffer->allocated);
}
