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

void files_buffers_begin(struct files_buffers *buffers)
{
	buffers->kept = false;
	buffers->nr_slabs = 0;
	buffers->nr_free = 0;
	pthread_mutex_init(&buffers->lock, NULL);
}

void files_buffers_end(struct files_buffers *buffers)
{
	for (unsigned i = 0; i < buffers->nr_slabs; i++)
		munmap(buffers->slabs[i], SLAB_BYTES);
	pthread_mutex_destroy(&buffers->lock);
}

/* Return: SLAB_BYTES at a multiple of them; NULL where there is no memory. */
static char *map_slab(void)
{
	char *at = mmap(NULL, 2 * SLAB_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (at == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)at & (SLAB_BYTES - 1);
	if (before)
		munmap(at, before);
	munmap(at + before + SLAB_BYTES, SLAB_BYTES - before);
	/* Past the C library, whose function the preload shim takes over. */
	syscall(SYS_madvise, at + before, SLAB_BYTES, MADV_HUGEPAGE);
	return at + before;
}

/* Return: NULL if none is free. */
static char *take_free(struct files_buffers *buffers)
{
	util_assert_held(&buffers->lock);
	return buffers->nr_free ? buffers->free[--buffers->nr_free] : NULL;
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
		munmap(slab, SLAB_BYTES);
	return at;
}

/* Return: NULL where there is none. */
static char *take_buffer(struct files_buffers *buffers)
{
	char *at;
	bool may_grow;

	pthread_mutex_lock(&buffers->lock);
	at = take_free(buffers);
	may_grow = buffers->nr_slabs < FILES_SLABS;
	pthread_mutex_unlock(&buffers->lock);
	if (at || !may_grow)
		return at;
	/* Without the lock, because this may take long. */
	at = map_slab();
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
