/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A mock-up of full-waveform inversion: an elastic wave runs forward in time
 * through a volume, with snapshots to the disk; then backward, each snapshot
 * being read again and correlated.  The structure is that of the first
 * application in Roca et al., "User-monitored threads" (see doc/design.md): the
 * task of a slice of length 1 along Y computes its velocities or its stresses.
 *
 *   volume.c    slices of the volume, a rank's part of them
 *   stencil.c   one step of one slice
 *   snapshot.c  slices to the disk and back, with checksums
 *   graph.c     the tasks of all steps
 *   verify.c    the same steps by one thread, compared bit by bit
 *   main.c      options and the order of all this
 *
 * It owns no physics worth the name: one homogeneous medium, a rim that stays
 * at rest, one source.
 */
#ifndef APPS_FWI_H
#define APPS_FWI_H

#include <stdint.h>

#include "apps/common/app.h"

/** What the user asked for. */
struct fwi_options {
	struct app_options app;
	unsigned x, y,
		z; /* cells, with a rim of HALF on each side in X and Z */
	unsigned steps; /* forward, and as many backward */
};

/* Points on each side that a difference looks at: 8th order in space. */
#define HALF 4

enum { VX, VY, VZ, VELOCITIES };
enum { SXX, SYY, SZZ, SXY, SXZ, SYZ, STRESSES };

/* ---- volume.c ---- */

/**
 * A rank's part: slices [first, first + slices) of the volume, and HALF more
 * before and after, which are the other ranks' or at rest.
 */
struct volume {
	unsigned x, z, first, slices;
	size_t field_floats; /* of one field in one slice */
	size_t velocity_bytes, stress_bytes; /* of one slice; whole pages */
	char *velocity, *stress;
	float *image; /* what backward steps find; @slices fields */
};

/** volume_init - rank @rank of @ranks; 0 or -ENOMEM */
int volume_init(struct volume *volume, const struct fwi_options *options,
		int rank, int ranks);
void volume_destroy(struct volume *volume);

/** volume_rest - as at the beginning again, but for the image */
void volume_rest(const struct volume *volume);

/* Slices are counted in the rank's part; from -HALF to slices + HALF - 1. */

/** slice_rest - one slice of that */
void slice_rest(const struct volume *volume, int slice);

static inline float *velocity_of(const struct volume *volume, int slice)
{
	return (float *)(volume->velocity +
			 (size_t)(slice + HALF) * volume->velocity_bytes);
}

static inline float *stress_of(const struct volume *volume, int slice)
{
	return (float *)(volume->stress +
			 (size_t)(slice + HALF) * volume->stress_bytes);
}

static inline float *image_of(const struct volume *volume, int slice)
{
	return volume->image + (size_t)slice * volume->field_floats;
}

/** volume_sum - of velocities, stresses and image of all own slices */
uint64_t volume_sum(const struct volume *volume);

/* ---- stencil.c ---- */

/** Where and how the wave begins. */
struct source {
	unsigned x, y, z; /* y of the whole volume */
	float amplitude; /* in this step */
};

/** source_at - forward in the middle; backward near the surface */
struct source source_at(const struct fwi_options *options, unsigned step,
			bool backward);

void velocity_step(const struct volume *volume, int slice,
		   const struct source *source);
void stress_step(const struct volume *volume, int slice);

/** image_add - correlate with a slice of a snapshot: its velocities first */
void image_add(const struct volume *volume, int slice, const float *snapshot);

/* ---- snapshot.c ---- */

struct snapshots; /* a rank's, in one file */

/** snapshots_open - room for @nr of them; 0 or -errno, told */
int snapshots_open(struct snapshots **all, const struct volume *volume,
		   const struct fwi_options *options, int rank, unsigned nr);
void snapshots_close(struct snapshots *all);

/** snapshot_write - @slice as it is now; any thread; 0 or -errno, told */
int snapshot_write(struct snapshots *all, unsigned nr, int slice);

/** snapshot_copy - take @slice as it is now into @buf; any thread */
void snapshot_copy(struct snapshots *all, unsigned nr, int slice, void *buf);

/** snapshot_write_copy - write that; any thread; 0 or -errno, told */
int snapshot_write_copy(struct snapshots *all, unsigned nr, int slice,
			const void *buf);

/** snapshot_bytes - of one slice */
size_t snapshot_bytes(const struct snapshots *all);

/** snapshot_name - of a slice in the file, for dependences */
void *snapshot_name(const struct snapshots *all, unsigned nr, int slice);

/** snapshot_read - into @buf; any thread; 0 or -errno, told */
int snapshot_read(struct snapshots *all, unsigned nr, int slice, void *buf);

/** snapshot_check - 0; -EILSEQ, told, if that is not what was written */
int snapshot_check(struct snapshots *all, unsigned nr, int slice,
		   const void *buf);

void snapshots_cost(const struct snapshots *all, uint64_t *written,
		    uint64_t *read);

/* ---- graph.c ---- */

/** graph_run - all steps as tasks; 0 or -errno, told */
int graph_run(struct volume *volume, const struct fwi_options *options,
	      struct snapshots *snapshots);

/* ---- verify.c ---- */

/** sequential_run - all steps by this thread, snapshots in memory; 0 or
 * -ENOMEM */
int sequential_run(struct volume *volume, const struct fwi_options *options);

/** verify_waves - rank 0 compares all ranks' volumes with a sequential program's */
int verify_waves(const struct volume *volume,
		 const struct fwi_options *options);

/** snapshots_of - how many, at every step that is a multiple of every */
static inline unsigned snapshots_of(const struct fwi_options *options)
{
	return options->app.every ? options->steps / options->app.every : 0;
}

/** snapshot_at - the number of the snapshot after @step (from 1); -1: none */
static inline int snapshot_at(const struct fwi_options *options, unsigned step)
{
	return options->app.every && step % options->app.every == 0
		       ? (int)(step / options->app.every) - 1
		       : -1;
}

#endif /* APPS_FWI_H */
