/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The part of a job that the kernel module does.  See device_job.h.
 *
 * The library runs it as a job of one thread, whose chunks are requests to the device.
 * So the library handles deadlines, progress and the result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_job.h"
#include "common/struct_size.h"
#include "kernel_device.h"
#include "mapping.h"
#include "util/least_limit.h"

/* Below this opening the device does not pay (our guess). */
#define LARGE_BYTES (64 * MIB)
/* A request of a job that may be cancelled: the least, and how long it takes. */
#define REQUEST_BYTES (16 * MIB)
#define REQUEST_US 20000
/* Chunks never cut a page of this size in the kernel. */
#define PAGE_MOST (2 * MIB)

/* ---- the setting ---- */

/* Other threads may be changing the environment: read for large jobs only. */
static const char *read_setting(void)
{
	const char *text = secure_getenv("KTASK_ENGINE");

	return text ? text : "";
}

static bool wants_kernel(void)
{
	return !strcmp(read_setting(), "kernel");
}

/* What policy allows a job here, less the helpers that work already. */
static unsigned allowed_threads(unsigned wanted)
{
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;
	unsigned threads = least_limit();

	if (wanted && wanted < threads)
		threads = wanted;
	ktask_jobs(NULL, 0, &permits);
	if (permits.used >= permits.limit)
		return 1;
	if (threads > 1 + permits.limit - permits.used)
		threads = 1 + permits.limit - permits.used;
	return threads;
}

/* ---- one job ---- */

static bool is_large(const struct op_job *job)
{
	return job->len >= LARGE_BYTES && job->align <= PAGE_MOST &&
	       job->opts->max_threads != 1 && !job->opts->flags;
}

/* From here on this process does what is left. */
static void abandon_device(struct device_job *device)
{
	device_close(device->fd);
	device->fd = -1;
}

void device_job_begin(struct device_job *device, struct op_job *job)
{
	*device = (struct device_job){ .fd = -1 };
	job->device = device;
	if (!is_large(job) || !wants_kernel())
		return;
	device->fd = device_open();
	if (device->fd < 0)
		return;
	device->max_threads = allowed_threads(job->opts->max_threads);
	if (device->max_threads < 2)
		abandon_device(device);
}

void device_job_end(struct device_job *device, struct op_job *job)
{
	if (device->fd >= 0)
		device_close(device->fd);
	if (job->result && job->result->threads < device->threads)
		job->result->threads = device->threads;
	job->device = NULL;
}

static bool is_in_use(const struct device_job *device)
{
	return device && device->fd >= 0;
}

static int request_chunk(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;
	struct device_job *device = job->device;
	unsigned threads;
	int error;

	/* The one page that is made before the others, and what is left when
	 * the device has refused. */
	if (!job->running || !is_in_use(device))
		return device->plain(start, end, arg);
	error = device_populate(device->fd, (uintptr_t)start, (uintptr_t)end,
				device->write, device->max_threads, &threads);
	if (!error) {
		if (device->threads < threads)
			device->threads = threads;
		return 0;
	}
	abandon_device(device);
	/* A job that may be cancelled has reported progress, so continue with the rest. */
	return op_may_be_cancelled(job) ? device->plain(start, end, arg)
					: error;
}

/* Return: false if the device refused; then nothing is in the result.  A job
 * that may be cancelled has one part only, and its errors are its own. */
static bool run_in_kernel(struct op_job *job, uintptr_t start, uintptr_t end,
			  int *error)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	bool own = op_may_be_cancelled(job);
	struct ktask_opts opts = *job->opts;
	struct op_job part = *job;

	opts.max_threads = 1;
	opts.chunk_us = REQUEST_US;
	part.opts = &opts;
	part.min_chunk = REQUEST_BYTES;
	part.result = own ? job->result : &result;
	*error = op_run_part(&part, start, end, request_chunk);
	if (*error && !own)
		return false;
	if (!own)
		op_add_result(job, &result);
	return true;
}

int device_job_run_part(struct op_job *job, uintptr_t start, uintptr_t end,
			ktask_thread_func chunk, bool write)
{
	struct device_job *device = job->device;
	int error;

	if (!is_in_use(device) || end - start < LARGE_BYTES)
		return op_run_part(job, start, end, chunk);
	device->plain = chunk;
	device->write = write;
	if (run_in_kernel(job, start, end, &error))
		return error;
	return op_run_part(job, start, end, chunk);
}

/* ---- for people ---- */

/* Return: whether the kernel does it. */
static bool explain_choice(struct ktask_engine *told)
{
	int fd;

	if (!wants_kernel()) {
		snprintf(told->why, sizeof(told->why), "%s",
			 strcmp(read_setting(), "user") ? "the default"
							: "KTASK_ENGINE=user");
		return false;
	}
	fd = device_open();
	if (fd < 0) {
		errno = -fd;
		snprintf(told->why, sizeof(told->why), DEVICE_PATH ": %m");
		return false;
	}
	device_close(fd);
	if (least_limit() < 2) {
		snprintf(told->why, sizeof(told->why),
			 "a job gets one thread here");
		return false;
	}
	snprintf(told->why, sizeof(told->why), "KTASK_ENGINE=kernel");
	return true;
}

int ktask_op_engine(const struct ktask_op *op, struct ktask_engine *engine)
{
	struct ktask_engine known = { 0 };
	int saved_errno = errno, error;

	if (!op || !engine)
		return -EINVAL;
	if (!op->in_kernel)
		return -EOPNOTSUPP;
	error = struct_size_check(engine->struct_size, STRUCT_SIZE_ONLY);
	if (error)
		return error;
	known.name = explain_choice(&known) ? "kernel" : "user";
	struct_size_write(engine, &known, sizeof(known));
	errno = saved_errno;
	return 0;
}
