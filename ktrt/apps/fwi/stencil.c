/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One step of the elastic wave equation in velocities and stresses on a
 * staggered grid (Virieux 1986; Levander 1988), differences of 8th order in
 * space: the weights of Fornberg for half a cell's offset.
 *
 * Velocities look at stresses of the slices within HALF, and the other way
 * round; nothing else is shared, so any order of slices gives the same bits.
 */
#include <math.h>
#include <stddef.h>

#include "fwi.h"

#define W1 (1225.0f / 1024)
#define W2 (-245.0f / 3072)
#define W3 (49.0f / 5120)
#define W4 (-5.0f / 7168)

/* Time step over cell size, times the medium's buoyancy and moduli: stable. */
#define BUOYANCY 0.1f
#define LAMBDA 0.5f
#define MU 0.5f

/* Difference of @f at @i, half a cell before it or after it, along @stride. */
static inline float difference_before(const float *f, ptrdiff_t i,
				      ptrdiff_t stride)
{
	return W1 * (f[i] - f[i - stride]) +
	       W2 * (f[i + stride] - f[i - 2 * stride]) +
	       W3 * (f[i + 2 * stride] - f[i - 3 * stride]) +
	       W4 * (f[i + 3 * stride] - f[i - 4 * stride]);
}

static inline float difference_after(const float *f, ptrdiff_t i,
				     ptrdiff_t stride)
{
	return W1 * (f[i + stride] - f[i]) +
	       W2 * (f[i + 2 * stride] - f[i - stride]) +
	       W3 * (f[i + 3 * stride] - f[i - 2 * stride]) +
	       W4 * (f[i + 4 * stride] - f[i - 3 * stride]);
}

/* ---- sources ---- */

static float ricker_wavelet(unsigned step, unsigned steps)
{
	/* Ricker's, its peak a quarter into the run but not later than 20. */
	float peak = steps / 4.0f < 20 ? steps / 4.0f : 20;
	float t = ((float)step - peak) * 0.25f;
	float square = (float)M_PI * (float)M_PI * t * t * 0.04f;

	return (1 - 2 * square) * expf(-square);
}

struct source source_at(const struct fwi_options *options, unsigned step,
			bool backward)
{
	return (struct source){
		.x = options->x / 2,
		.y = options->y / 2,
		.z = backward ? HALF : options->z / 2,
		.amplitude = ricker_wavelet(step, options->steps),
	};
}

/* ---- a slice ---- */

static void add_source(const struct volume *volume, int slice,
		       const struct source *source)
{
	if (volume->first + (unsigned)slice != source->y)
		return;
	velocity_of(volume, slice)[VZ * volume->field_floats +
				   (size_t)source->x * volume->z + source->z] +=
		source->amplitude;
}

void velocity_step(const struct volume *volume, int slice,
		   const struct source *source)
{
	const ptrdiff_t nz = volume->z, nx = volume->x;
	const ptrdiff_t ny = (ptrdiff_t)(volume->stress_bytes / sizeof(float));
	const size_t field = volume->field_floats;
	const float *s = stress_of(volume, slice);
	const float *sxx = s + SXX * field, *syy = s + SYY * field;
	const float *szz = s + SZZ * field, *sxy = s + SXY * field;
	const float *sxz = s + SXZ * field, *syz = s + SYZ * field;
	float *restrict v = velocity_of(volume, slice);

	for (ptrdiff_t x = HALF; x < nx - HALF; x++)
		for (ptrdiff_t z = HALF; z < nz - HALF; z++) {
			ptrdiff_t i = x * nz + z;

			v[VX * field + (size_t)i] +=
				BUOYANCY * (difference_after(sxx, i, nz) +
					    difference_before(sxy, i, ny) +
					    difference_before(sxz, i, 1));
			v[VY * field + (size_t)i] +=
				BUOYANCY * (difference_before(sxy, i, nz) +
					    difference_after(syy, i, ny) +
					    difference_before(syz, i, 1));
			v[VZ * field + (size_t)i] +=
				BUOYANCY * (difference_before(sxz, i, nz) +
					    difference_before(syz, i, ny) +
					    difference_after(szz, i, 1));
		}
	add_source(volume, slice, source);
}

void stress_step(const struct volume *volume, int slice)
{
	const ptrdiff_t nz = volume->z, nx = volume->x;
	const ptrdiff_t ny =
		(ptrdiff_t)(volume->velocity_bytes / sizeof(float));
	const size_t field = volume->field_floats;
	const float *v = velocity_of(volume, slice);
	const float *vx = v + VX * field, *vy = v + VY * field;
	const float *vz = v + VZ * field;
	float *restrict s = stress_of(volume, slice);

	for (ptrdiff_t x = HALF; x < nx - HALF; x++)
		for (ptrdiff_t z = HALF; z < nz - HALF; z++) {
			ptrdiff_t i = x * nz + z;
			float xx = difference_before(vx, i, nz),
			      yy = difference_before(vy, i, ny);
			float zz = difference_before(vz, i, 1);
			float all = LAMBDA * (xx + yy + zz);

			s[SXX * field + (size_t)i] += all + 2 * MU * xx;
			s[SYY * field + (size_t)i] += all + 2 * MU * yy;
			s[SZZ * field + (size_t)i] += all + 2 * MU * zz;
			s[SXY * field + (size_t)i] +=
				MU * (difference_after(vx, i, ny) +
				      difference_after(vy, i, nz));
			s[SXZ * field + (size_t)i] +=
				MU * (difference_after(vx, i, 1) +
				      difference_after(vz, i, nz));
			s[SYZ * field + (size_t)i] +=
				MU * (difference_after(vy, i, 1) +
				      difference_after(vz, i, ny));
		}
}

void image_add(const struct volume *volume, int slice, const float *snapshot)
{
	const float *v = velocity_of(volume, slice);
	const size_t field = volume->field_floats;
	float *image = image_of(volume, slice);

	for (size_t i = 0; i < field; i++)
		image[i] += v[VX * field + i] * snapshot[VX * field + i] +
			    v[VY * field + i] * snapshot[VY * field + i] +
			    v[VZ * field + i] * snapshot[VZ * field + i];
}
