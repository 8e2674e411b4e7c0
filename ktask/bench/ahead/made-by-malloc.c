/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ways of touch-memory, for programs of others whose memory comes from malloc(): a
 * library to be preloaded.  Large blocks are made, of huge pages where the machine has them
 * on advice, as MADE_BY_MALLOC says:
 *
 *	populate	by one thread, in the call that allocates
 *	threads		the same, by as many threads as there are CPUs
 *	beside		by one thread, from the call on, in the order of addresses: no helper
 *			that must find out what is touched can be faster
 *
 * A block that is freed before it is made may be mapped for something else by then, which
 * is made in its place.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define LEAST_BYTES ((size_t)32 << 20)
#define HUGE_BYTES ((size_t)2 << 20)
#define CPUS_MAX 64
#define EXPORTED __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *block, size_t size);

/* Of a block, by one thread. */
struct part {
	char *start, *end;
};

static void *make_part(void *arg)
{
	const struct part *part = arg;

	for (char *at = part->start; at < part->end; at += HUGE_BYTES)
		madvise(at, HUGE_BYTES, MADV_POPULATE_WRITE);
	return NULL;
}

static void make_by_threads(const struct part *whole)
{
	size_t nr = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	size_t pages = (size_t)(whole->end - whole->start) / HUGE_BYTES;
	pthread_t threads[CPUS_MAX];
	struct part parts[CPUS_MAX];

	nr = nr > CPUS_MAX ? CPUS_MAX : nr;
	for (size_t i = 0; i < nr; i++) {
		parts[i].start = whole->start + pages * i / nr * HUGE_BYTES;
		parts[i].end = whole->start + pages * (i + 1) / nr * HUGE_BYTES;
		if (pthread_create(&threads[i], NULL, make_part, &parts[i]))
			abort();
	}
	for (size_t i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

static void *make_own_part(void *part)
{
	make_part(part);
	free(part);
	return NULL;
}

static void make_beside(const struct part *whole)
{
	struct part *part = malloc(sizeof(*part));
	pthread_t thread;

	if (!part)
		abort();
	*part = *whole;
	if (pthread_create(&thread, NULL, make_own_part, part) ||
	    pthread_detach(thread))
		abort();
}

static void make_block(const struct part *whole)
{
	const char *way = getenv("MADE_BY_MALLOC");

	if (!way)
		return;
	madvise(whole->start, (size_t)(whole->end - whole->start),
		MADV_HUGEPAGE);
	if (!strcmp(way, "populate"))
		make_part((void *)whole);
	else if (!strcmp(way, "threads"))
		make_by_threads(whole);
	else
		make_beside(whole);
}

/* Whole huge pages of it. */
static void *note_block(void *block, size_t size)
{
	struct part whole;

	if (size < LEAST_BYTES || !block)
		return block;
	whole.start =
		(char *)(((size_t)block + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	whole.end = (char *)(((size_t)block + size) & ~(HUGE_BYTES - 1));
	make_block(&whole);
	return block;
}

EXPORTED void *malloc(size_t size)
{
	return note_block(__libc_malloc(size), size);
}

EXPORTED void *calloc(size_t nr, size_t size)
{
	return note_block(__libc_calloc(nr, size), nr * size);
}

EXPORTED void *realloc(void *block, size_t size)
{
	return note_block(__libc_realloc(block, size), size);
}
