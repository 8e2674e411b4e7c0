/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory that operations on files read into and write from: see files.h.
 *
 * Two buffers share a huge page if the kernel has one.  Then a direct request has one
 * segment instead of 256, which cost the device more: with huge pages a virtual disk
 * read and wrote 1.6 times as much (bench/notebook/2026-11.md).  Buffers are reused until
 * the job ends, because the faults of a new buffer take as long as reading into it.
 *
 * Behaves badly if memory is fragmented: the kernel may take milliseconds to find a huge
 * page for two threads, or gives small pages.
 *
 * Locking: files.h.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"
#include "util/assertion.h"

/* A huge page of most machines; elsewhere these are small pages. */
#define SLAB_BYTES (2 * MIB)
#define BUFFER_BYTES MIB
#define AREA_BYTES (FILES_SLABS * SLAB_BYTES)

/* Machines of 32 bits have a call whose offset counts pages.  Here the offset is 0. */
#ifdef SYS_mmap2
#define MAP_CALL SYS_mmap2
#else
#define MAP_CALL SYS_mmap
#endif

/* The thread sanitizer must see which memory is new, or it takes two buffers of one address
 * for one. */
#ifdef __SANITIZE_THREAD__
#define IS_WATCHED true
#elif defined(__has_feature)
/* As clang tells it. */
#if __has_feature(thread_sanitizer)
#define IS_WATCHED true
#endif
#endif
#ifndef IS_WATCHED
#define IS_WATCHED false
#endif

/* Not by the C library's function, which the preload shim takes over: an area is large enough
 * for that.  So are the other calls here that it would take over. */
static char *map_memory(size_t len, int prot)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	if (IS_WATCHED)
		return mmap(NULL, len, prot, flags, -1, 0);
	return (char *)syscall(MAP_CALL, NULL, len, prot, flags, -1l, 0l);
}

static void unmap_memory(void *at, size_t len)
{
	if (IS_WATCHED)
		munmap(at, len);
	else
		syscall(SYS_munmap, at, len);
}

void files_buffers_begin(struct files_buffers *buffers)
{
	buffers->kept = false;
	buffers->nr_slabs = 0;
	buffers->nr_free = 0;
	buffers->area = NULL;
	pthread_mutex_init(&buffers->lock, NULL);
}

void files_buffers_end(struct files_buffers *buffers)
{
	if (buffers->area)
		unmap_memory(buffers->area, AREA_BYTES);
	for (unsigned i = 0; !buffers->area && i < buffers->nr_slabs; i++)
		unmap_memory(buffers->slabs[i], SLAB_BYTES);
	pthread_mutex_destroy(&buffers->lock);
}

/* Return: @len bytes at a multiple of SLAB_BYTES; NULL where there is no memory. */
static char *map_slabs(size_t len, int prot)
{
	char *at = map_memory(len + SLAB_BYTES, prot);
	size_t before;

	if (at == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)at & (SLAB_BYTES - 1);
	if (before)
		unmap_memory(at, before);
	unmap_memory(at + before + len, SLAB_BYTES - before);
	syscall(SYS_madvise, at + before, len, MADV_HUGEPAGE);
	return at + before;
}

/* Without access at first: if the program has asked that all it maps be locked, the kernel
 * would make all pages at once. */
void files_buffers_map(struct files_buffers *buffers)
{
	char *area = map_slabs(AREA_BYTES, PROT_NONE);

	if (!area)
		return;
	if (syscall(SYS_munlock, area, AREA_BYTES) ||
	    mprotect(area, AREA_BYTES, PROT_READ | PROT_WRITE))
		unmap_memory(area, AREA_BYTES);
	else
		buffers->area = area;
}

/* Return: NULL if none is free. */
static char *take_free(struct files_buffers *buffers)
{
	util_assert_held(&buffers->lock);
	return buffers->nr_free ? buffers->free[--buffers->nr_free] : NULL;
}

/* Return: one half of the next slab of the area; NULL behind the last one. */
static char *take_of_area(struct files_buffers *buffers)
{
	char *slab;

	util_assert_held(&buffers->lock);
	if (!buffers->area || buffers->nr_slabs == FILES_SLABS)
		return NULL;
	slab = buffers->area + SLAB_BYTES * buffers->nr_slabs++;
	buffers->free[buffers->nr_free++] = slab + BUFFER_BYTES;
	return slab;
}

/* Return: one half of @slab.  If other threads have filled the table meanwhile: one of
 * their buffers, or NULL if none is free. */
static char *add_slab(struct files_buffers *buffers, char *slab)
{
	char *at = slab;

	pthread_mutex_lock(&buffers->lock);
	if (buffers->nr_slabs < FILES_SLABS) {
		buffers->slabs[buffers->nr_slabs++] = slab;
		buffers->free[buffers->nr_free++] = slab + BUFFER_BYTES;
	} else {
		at = take_free(buffers);
	}
	pthread_mutex_unlock(&buffers->lock);
	if (at != slab)
		unmap_memory(slab, SLAB_BYTES);
	return at;
}

/* Return: NULL where there is none. */
static char *take_buffer(struct files_buffers *buffers)
{
	char *at;
	bool may_grow;

	pthread_mutex_lock(&buffers->lock);
	at = take_free(buffers);
	if (!at)
		at = take_of_area(buffers);
	may_grow = !buffers->area && buffers->nr_slabs < FILES_SLABS;
	pthread_mutex_unlock(&buffers->lock);
	if (at || !may_grow)
		return at;
	/* Without the lock, because this may take long. */
	at = map_slabs(SLAB_BYTES, PROT_READ | PROT_WRITE);
	return at ? add_slab(buffers, at) : NULL;
}

static void give_buffer(struct files_buffers *buffers, char *at)
{
	pthread_mutex_lock(&buffers->lock);
	buffers->free[buffers->nr_free++] = at;
	pthread_mutex_unlock(&buffers->lock);
}

/* A frame of its own: the caller may have little stack. */
__attribute__((noinline)) static int with_block(files_buffer_func func,
						void *arg)
{
	char block[FILES_BLOCK] __attribute__((aligned(FILES_BLOCK)));
	struct files_buffer buffer = { block, sizeof(block) };

	return func(&buffer, arg);
}

static int with_own(files_buffer_func func, void *arg)
{
	struct files_buffer buffer = { aligned_alloc(FILES_BLOCK, BUFFER_BYTES),
				       BUFFER_BYTES };
	int error;

	if (!buffer.at)
		return with_block(func, arg);
	error = func(&buffer, arg);
	free(buffer.at);
	return error;
}

int files_with_buffer(struct files_buffers *buffers, files_buffer_func func,
		      void *arg)
{
	struct files_buffer buffer = { NULL, BUFFER_BYTES };
	int error;

	if (buffers->kept)
		buffer.at = take_buffer(buffers);
	if (!buffer.at)
		return with_own(func, arg);
	error = func(&buffer, arg);
	give_buffer(buffers, buffer.at);
	return error;
}
