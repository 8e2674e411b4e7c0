/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Stores that go past the caches (x86-64) and those that do not.
 *
 * Measured on an AMD EPYC (Zen 4 or 5, 2 vCPUs of a guest, 32 MiB L3), Linux
 * 6.18, chunks of 1 MiB, median of 7, GB/s, one thread:
 *
 *	fill, touched        256K   1M   4M  16M  64M  256M   1G
 *	  memset              168  168  132  128   60    40   35
 *	  16-byte streaming    89   85   90   82   90    89   76
 *	  32-byte streaming    89   96   95   67   94    89   76
 *	fill, untouched, 4 KiB pages
 *	  memset              2.9  2.9  2.8  2.9  2.8   2.8  2.7
 *	  16-byte streaming   2.6  2.7  2.7  2.7  2.6   2.6  2.5
 *	fill, untouched, 2 MiB pages
 *	  memset                -    -   40   44   22    19   19
 *	  16-byte streaming     -    -   15   15   15    15   15
 *
 * The ratios are the same with two threads.  So streaming pays if the memory is touched
 * and the job does not fit into the last-level cache.  It loses if the kernel has just
 * cleared the page into the caches.  Wider vectors gain nothing reliable, and are not
 * used.
 */
#include <stdint.h>
#include <string.h>

#include "mapping.h"
#include "store.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* Between the 16 MiB and the 64 MiB columns above. */
#define STREAM_FROM_BYTES (32 * MIB)

/* See the table in fill.c. */
#define TOUCHED_MIN_CHUNK (4 * MIB)

void store_align(struct op_job *job)
{
	const char *last = job->addr + job->len - 1;

	mapping_align_store(job);
	if (op_is_small(job))
		return;
	if (mapping_present(job->addr + job->len / 2) && mapping_present(last))
		job->min_chunk = TOUCHED_MIN_CHUNK;
}

bool store_by_stream(const struct op_job *job, const char *start, size_t len)
{
#if defined(__x86_64__)
	if (job->flags & KTASK_STORE_STREAM)
		return true;
	if (job->flags & KTASK_STORE_CACHED || job->len < STREAM_FROM_BYTES)
		return false;
	/* The last page: the first may share a huge page with other work. */
	return mapping_present(start + len - 1);
#else
	return false;
#endif
}

#if defined(__x86_64__)

/* Bytes before the first 64-byte line of @dst. */
static size_t head_bytes(const char *dst, size_t len)
{
	size_t head = -(uintptr_t)dst & (STORE_STEP_BYTES - 1);

	return head < len ? head : len;
}

static inline void stream_line(char *dst, const char *src)
{
	const __m128i *from = (const __m128i *)src;
	__m128i *to = (__m128i *)dst;
	__m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
	__m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

	_mm_stream_si128(to, a);
	_mm_stream_si128(to + 1, b);
	_mm_stream_si128(to + 2, c);
	_mm_stream_si128(to + 3, d);
}

/* Streaming stores are weakly ordered; whoever ends the job reads them. */
static void stream_end(void)
{
	_mm_sfence();
}

#else

static size_t head_bytes(const char *dst, size_t len)
{
	return 0;
}

static inline void stream_line(char *dst, const char *src)
{
	memcpy(dst, src, STORE_STEP_BYTES);
}

static void stream_end(void)
{
}

#endif

static void store_stream_byte(char *dst, int byte, size_t len)
{
	char line[STORE_STEP_BYTES];
	size_t done = head_bytes(dst, len);

	memset(line, byte, sizeof(line));
	memset(dst, byte, done);
	for (; len - done >= STORE_STEP_BYTES; done += STORE_STEP_BYTES)
		stream_line(dst + done, line);
	memset(dst + done, byte, len - done);
	stream_end();
}

static bool is_uniform(const char *pattern, size_t len)
{
	return !memcmp(pattern, pattern + 1, len - 1);
}

void store_tile_init(struct store_tile *tile, const char *pattern, size_t len)
{
	tile->period = len;
	while (tile->period < STORE_STEP_BYTES)
		tile->period += len;
	tile->uniform = is_uniform(pattern, len);
	for (size_t i = 0; i < tile->period + STORE_STEP_BYTES; i++)
		tile->bytes[i] = pattern[i % len];
}

/* @phase + @len, within the period; @len is at most STORE_STEP_BYTES. */
static size_t advance_phase(const struct store_tile *tile, size_t phase,
			    size_t len)
{
	phase += len;
	return phase >= tile->period ? phase - tile->period : phase;
}

static void tile_lines(char *dst, size_t len, const struct store_tile *tile,
		       size_t phase, bool stream)
{
	size_t done = stream ? head_bytes(dst, len) : 0;

	memcpy(dst, tile->bytes + phase, done);
	phase = advance_phase(tile, phase, done);
	for (; len - done >= STORE_STEP_BYTES; done += STORE_STEP_BYTES) {
		if (stream)
			stream_line(dst + done, tile->bytes + phase);
		else
			memcpy(dst + done, tile->bytes + phase,
			       STORE_STEP_BYTES);
		phase = advance_phase(tile, phase, STORE_STEP_BYTES);
	}
	memcpy(dst + done, tile->bytes + phase, len - done);
	if (stream)
		stream_end();
}

void store_tile(char *dst, size_t len, const struct store_tile *tile,
		size_t phase, bool stream)
{
	if (!tile->uniform)
		tile_lines(dst, len, tile, phase % tile->period, stream);
	else if (stream)
		store_stream_byte(dst, tile->bytes[0], len);
	else
		memset(dst, tile->bytes[0], len);
}
