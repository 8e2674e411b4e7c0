/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/disk.h"
#include "fwi.h"

int volume_init(struct volume *volume, const struct fwi_options *options,
		int rank, int ranks)
{
	unsigned first = app_part_start(options->y, rank, ranks);
	unsigned end = app_part_start(options->y, rank + 1, ranks);
	size_t all = end - first + 2 * HALF;

	*volume = (struct volume){
		.x = options->x,
		.z = options->z,
		.first = first,
		.slices = end - first,
		.field_floats = (size_t)options->x * options->z,
	};
	volume->velocity_bytes =
		disk_round(VELOCITIES * volume->field_floats * sizeof(float));
	volume->stress_bytes =
		disk_round(STRESSES * volume->field_floats * sizeof(float));
	volume->velocity = disk_alloc(all * volume->velocity_bytes);
	volume->stress = disk_alloc(all * volume->stress_bytes);
	volume->image = disk_alloc(volume->slices * volume->field_floats *
				   sizeof(float));
	if (!volume->velocity || !volume->stress || !volume->image) {
		volume_destroy(volume);
		return -ENOMEM;
	}
	volume_rest(volume);
	return 0;
}

void volume_destroy(struct volume *volume)
{
	free(volume->velocity);
	free(volume->stress);
	free(volume->image);
	*volume = (struct volume){ 0 };
}

/*
 * The ground is never quite at rest.  (Ahead of a wave in one that is, numbers
 * are too small to be normal, and a processor takes 20 times as long for them.)
 */
static void add_noise(float *field, unsigned x, unsigned z, uint64_t *random)
{
	for (unsigned i = HALF; i < x - HALF; i++)
		for (unsigned j = HALF; j < z - HALF; j++) {
			*random = *random * 6364136223846793005u +
				  1442695040888963407u;
			field[(size_t)i * z + j] =
				((float)(*random >> 40) * 0x1p-23f - 1) *
				0x1p-10f;
		}
}

void slice_rest(const struct volume *volume, int slice)
{
	uint64_t random = volume->first + (unsigned)slice;

	memset(velocity_of(volume, slice), 0, volume->velocity_bytes);
	memset(stress_of(volume, slice), 0, volume->stress_bytes);
	if (slice < 0 || slice >= (int)volume->slices)
		return;
	for (int field = 0; field < VELOCITIES; field++)
		add_noise(velocity_of(volume, slice) +
				  (size_t)field * volume->field_floats,
			  volume->x, volume->z, &random);
}

void volume_rest(const struct volume *volume)
{
	for (int slice = -HALF; slice < (int)volume->slices + HALF; slice++)
		slice_rest(volume, slice);
}

static uint64_t add_to_sum(uint64_t sum, const void *data, size_t floats)
{
	return (sum << 1 | sum >> 63) ^ disk_sum(data, floats * sizeof(float));
}

uint64_t volume_sum(const struct volume *volume)
{
	uint64_t sum = 0;

	for (int slice = 0; slice < (int)volume->slices; slice++) {
		sum = add_to_sum(sum, velocity_of(volume, slice),
				 VELOCITIES * volume->field_floats);
		sum = add_to_sum(sum, stress_of(volume, slice),
				 STRESSES * volume->field_floats);
		sum = add_to_sum(sum, image_of(volume, slice),
				 volume->field_floats);
	}
	return sum;
}
