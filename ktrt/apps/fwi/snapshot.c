/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A rank's snapshots: DIR/fwi.RANK, one after the other, each slice by slice
 * (velocities, then stresses, each in whole pages).  The file has no name once
 * it is open: it is of no use to anybody afterwards, however the run ends.
 * Checksums are kept in memory.
 *
 * Locking: there is no lock.  Each task writes and reads a slice of its own, and its
 * checksums.  What is atomic is of all tasks.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/disk.h"
#include "fwi.h"

struct snapshots {
	const struct volume *volume;
	char path[PATH_MAX];
	int fd;
	uint64_t *sums; /* velocity's and stress's of each slice of each */
	_Atomic uint64_t written, read;
	_Atomic int told; /* that something is wrong */
};

size_t snapshot_bytes(const struct snapshots *all)
{
	return all->volume->velocity_bytes + all->volume->stress_bytes;
}

int snapshots_open(struct snapshots **all, const struct volume *volume,
		   const struct fwi_options *options, int rank, unsigned nr)
{
	struct snapshots *new = calloc(1, sizeof(*new));
	int error = -ENOMEM;

	if (!new)
		return app_fail(error, "preparing snapshots");
	new->volume = volume;
	new->sums =
		calloc((size_t)nr * volume->slices * 2 + 1, sizeof(*new->sums));
	snprintf(new->path, sizeof(new->path), "%s/fwi.%d", options->app.dir,
		 rank);
	new->fd = -1;
	if (new->sums)
		error = new->fd =
			disk_open(new->path, !options->app.buffered, true);
	if (new->fd >= 0) {
		unlink(new->path);
		error = disk_reserve(new->fd, (uint64_t)nr * volume->slices *
						      snapshot_bytes(new));
	}
	if (error) {
		app_fail(error, "creating %s", new->path);
		if (new->fd >= 0)
			close(new->fd);
		free(new->sums);
		free(new);
		return error;
	}
	*all = new;
	return 0;
}

void snapshots_close(struct snapshots *all)
{
	if (!all)
		return;
	close(all->fd);
	free(all->sums);
	free(all);
}

static size_t index_of(const struct snapshots *all, unsigned nr, int slice)
{
	return (size_t)nr * all->volume->slices + (size_t)slice;
}

void *snapshot_name(const struct snapshots *all, unsigned nr, int slice)
{
	return &all->sums[2 * index_of(all, nr, slice)];
}

/* If many tasks fail, only the first one prints a message. */
static int report_once(struct snapshots *all, int error, const char *doing)
{
	if (error && !atomic_exchange(&all->told, 1))
		app_fail(error, "%s %s", doing, all->path);
	return error;
}

static void keep_sums(struct snapshots *all, size_t index, const void *velocity,
		      const void *stress)
{
	const struct volume *volume = all->volume;

	all->sums[2 * index] = disk_sum(velocity, volume->velocity_bytes);
	all->sums[2 * index + 1] = disk_sum(stress, volume->stress_bytes);
}

int snapshot_write(struct snapshots *all, unsigned nr, int slice)
{
	const struct volume *volume = all->volume;
	struct iovec parts[] = {
		{ velocity_of(volume, slice), volume->velocity_bytes },
		{ stress_of(volume, slice), volume->stress_bytes },
	};
	size_t index = index_of(all, nr, slice);
	int error;

	keep_sums(all, index, parts[0].iov_base, parts[1].iov_base);
	/* At once: a worker that wakes up in between has a core to share. */
	error = disk_write_parts(all->fd, parts, 2,
				 index * snapshot_bytes(all));
	if (!error)
		all->written += snapshot_bytes(all);
	return report_once(all, error, "writing");
}

void snapshot_copy(struct snapshots *all, unsigned nr, int slice, void *buf)
{
	const struct volume *volume = all->volume;
	char *stress = (char *)buf + volume->velocity_bytes;

	memcpy(buf, velocity_of(volume, slice), volume->velocity_bytes);
	memcpy(stress, stress_of(volume, slice), volume->stress_bytes);
	keep_sums(all, index_of(all, nr, slice), buf, stress);
}

int snapshot_write_copy(struct snapshots *all, unsigned nr, int slice,
			const void *buf)
{
	size_t bytes = snapshot_bytes(all);
	int error = disk_write(all->fd, buf, bytes,
			       index_of(all, nr, slice) * bytes);

	if (!error)
		all->written += bytes;
	return report_once(all, error, "writing");
}

int snapshot_read(struct snapshots *all, unsigned nr, int slice, void *buf)
{
	size_t bytes = snapshot_bytes(all);
	int error = disk_read(all->fd, buf, bytes,
			      index_of(all, nr, slice) * bytes);

	if (!error)
		all->read += bytes;
	return report_once(all, error, "reading");
}

int snapshot_check(struct snapshots *all, unsigned nr, int slice,
		   const void *buf)
{
	const struct volume *volume = all->volume;
	const char *stress = (const char *)buf + volume->velocity_bytes;
	const uint64_t *sums = &all->sums[2 * index_of(all, nr, slice)];
	bool same = disk_sum(buf, volume->velocity_bytes) == sums[0] &&
		    disk_sum(stress, volume->stress_bytes) == sums[1];

	return report_once(all, same ? 0 : -EILSEQ, "reading");
}

void snapshots_cost(const struct snapshots *all, uint64_t *written,
		    uint64_t *read)
{
	*written = all->written;
	*read = all->read;
}
