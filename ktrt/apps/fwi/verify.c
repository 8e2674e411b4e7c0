/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/comm.h"
#include "fwi.h"

#define TAG_SLICE 31000

static void step_volume(const struct volume *volume,
			const struct source *source)
{
	for (int slice = 0; slice < (int)volume->slices; slice++)
		velocity_step(volume, slice, source);
	for (int slice = 0; slice < (int)volume->slices; slice++)
		stress_step(volume, slice);
}

static void run_steps(struct volume *volume, const struct fwi_options *options,
		      char *velocities)
{
	size_t bytes = volume->slices * volume->velocity_bytes;

	for (unsigned at = 1; at <= options->steps; at++) {
		struct source source = source_at(options, at, false);
		int nr = snapshot_at(options, at);

		step_volume(volume, &source);
		if (nr >= 0)
			memcpy(velocities + (size_t)nr * bytes,
			       velocity_of(volume, 0), bytes);
	}
	volume_rest(volume);
	for (unsigned at = options->steps; at; at--) {
		struct source source = source_at(options, at, true);
		int nr = snapshot_at(options, at);

		step_volume(volume, &source);
		for (int slice = 0; nr >= 0 && slice < (int)volume->slices;
		     slice++)
			image_add(volume, slice,
				  (const float
					   *)(velocities + (size_t)nr * bytes +
					      (size_t)slice *
						      volume->velocity_bytes));
	}
}

int sequential_run(struct volume *volume, const struct fwi_options *options)
{
	char *velocities =
		malloc((size_t)snapshots_of(options) * volume->slices *
			       volume->velocity_bytes +
		       1);

	if (!velocities)
		return -ENOMEM;
	run_steps(volume, options, velocities);
	free(velocities);
	return 0;
}

/* ---- comparing ---- */

static int compare_floats(const void *expected, const void *got, size_t floats,
			  const char *what, unsigned slice)
{
	if (!memcmp(expected, got, floats * sizeof(float)))
		return 0;
	fprintf(stderr, "fwi: verifying: %s of slice %u differ\n", what, slice);
	return -EILSEQ;
}

/* @part is a rank's, or what it sent. */
static int compare_part(const struct volume *whole, const struct volume *part)
{
	size_t field = whole->field_floats;
	int error = 0;

	for (int slice = 0; slice < (int)part->slices && !error; slice++) {
		int at = (int)part->first + slice;

		error = compare_floats(
			velocity_of(whole, at), velocity_of(part, slice),
			VELOCITIES * field, "the velocities", (unsigned)at);
		if (!error)
			error = compare_floats(
				stress_of(whole, at), stress_of(part, slice),
				STRESSES * field, "the stresses", (unsigned)at);
		if (!error)
			error = compare_floats(image_of(whole, at),
					       image_of(part, slice), field,
					       "the images", (unsigned)at);
	}
	return error;
}

static void receive_volume(const struct volume *part, int rank)
{
	for (int slice = 0; slice < (int)part->slices; slice++) {
		comm_recv(velocity_of(part, slice), part->velocity_bytes, rank,
			  TAG_SLICE);
		comm_recv(stress_of(part, slice), part->stress_bytes, rank,
			  TAG_SLICE);
		comm_recv(image_of(part, slice),
			  part->field_floats * sizeof(float), rank, TAG_SLICE);
	}
}

static void send_volume(const struct volume *part)
{
	for (int slice = 0; slice < (int)part->slices; slice++) {
		comm_send(velocity_of(part, slice), part->velocity_bytes, 0,
			  TAG_SLICE);
		comm_send(stress_of(part, slice), part->stress_bytes, 0,
			  TAG_SLICE);
		comm_send(image_of(part, slice),
			  part->field_floats * sizeof(float), 0, TAG_SLICE);
	}
}

static int judge_volume(const struct volume *own,
			const struct fwi_options *options)
{
	struct volume whole, part;
	int error = volume_init(&whole, options, 0, 1);

	if (!error)
		error = sequential_run(&whole, options);
	if (error) {
		app_fail(error, "verifying");
		comm_abort();
	}
	error = compare_part(&whole, own);
	for (int rank = 1; rank < comm_ranks(); rank++) {
		if (volume_init(&part, options, rank, comm_ranks()))
			comm_abort();
		receive_volume(&part, rank);
		if (!error)
			error = compare_part(&whole, &part);
		volume_destroy(&part);
	}
	volume_destroy(&whole);
	return error;
}

int verify_waves(const struct volume *volume, const struct fwi_options *options)
{
	if (!comm_rank())
		return judge_volume(volume, options);
	send_volume(volume);
	return 0;
}
