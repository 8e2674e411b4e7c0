/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An allocator that a program brings along: it maps much memory at its first call, with
 * its lock held, and hands it out from the beginning.  Whoever allocates while it maps
 * waits for ever.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES ((size_t)256 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char early[16 << 20], *arena;
static size_t used, early_used;

/* The loader and the shim allocate before the program begins. */
static void map_arena(void)
{
	void *base = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	arena = base == MAP_FAILED ? NULL : base;
}

/* Blocks of just a page come from the arena. */
void *malloc(size_t size)
{
	bool page = size == 4096;
	char *at;

	pthread_mutex_lock(&lock);
	size = (size + 31) & ~(size_t)15;
	if (page && !arena)
		map_arena();
	if (page && arena && used + size <= ARENA_BYTES) {
		at = arena + used + 16;
		used += size;
	} else {
		at = early + early_used + 16;
		early_used += size;
	}
	*(size_t *)(void *)(at - 16) = size - 16;
	pthread_mutex_unlock(&lock);
	return early_used < sizeof(early) ? at : NULL;
}

/* Only the last one comes back. */
void free(void *block)
{
	char *at = block;
	size_t size = at ? *(size_t *)(void *)(at - 16) : 0;

	pthread_mutex_lock(&lock);
	if (at && at + size == early + early_used)
		early_used -= size + 16;
	pthread_mutex_unlock(&lock);
}

void *calloc(size_t nr, size_t size)
{
	void *block = malloc(nr * size);

	return block ? memset(block, 0, nr * size) : NULL;
}

void *memalign(size_t align, size_t size)
{
	char *at = malloc(size + align + 16);

	at += 16 + (align - (size_t)(at + 16) % align) % align;
	*(size_t *)(void *)(at - 16) = size;
	return at;
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
	*block = memalign(align, size);
	return 0;
}

void *realloc(void *block, size_t size)
{
	char *made = malloc(size), *old = block;
	size_t before = old ? *(size_t *)(void *)(old - 16) : 0;

	if (made && old)
		memcpy(made, old, before < size ? before : size);
	return made;
}
