/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * malloc and its kin: the watcher is told of large blocks, and told again before they
 * are freed.  The next allocator in the loader's order does the work: the C library's
 * or the program's own.
 *
 * A small call costs a comparison and a jump.  So does free(), unless the block lies
 * between the lowest and the highest block that is watched.
 *
 * The next allocator is looked up at the first call, which the loader may make before
 * any constructor ran.  If the lookup itself allocates, the C library's own functions
 * serve it.
 *
 * Locking: there is no lock.  Threads that look up at the same time write the same
 * addresses; known_allocator is stored (release) when all of them are there.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "preload/shim.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *block);

static int align_by_libc(void **block, size_t align, size_t size)
{
	void *made = __libc_memalign(align, size);

	if (!made)
		return ENOMEM;
	*block = made;
	return 0;
}

static void *valloc_by_libc(size_t size)
{
	return __libc_memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

static void *pvalloc_by_libc(size_t size)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	return __builtin_add_overflow(size, page_bytes - 1, &size)
		       ? NULL
		       : valloc_by_libc(size & ~(page_bytes - 1));
}

struct allocator {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t nr, size_t size);
	void *(*realloc)(void *block, size_t size);
	void *(*aligned_alloc)(size_t align, size_t size);
	void *(*memalign)(size_t align, size_t size);
	int (*posix_memalign)(void **block, size_t align, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	void (*free)(void *block);
};

static const struct allocator libc_allocator = {
	.malloc = __libc_malloc,
	.calloc = __libc_calloc,
	.realloc = __libc_realloc,
	.aligned_alloc = __libc_memalign,
	.memalign = __libc_memalign,
	.posix_memalign = align_by_libc,
	.valloc = valloc_by_libc,
	.pvalloc = pvalloc_by_libc,
	.free = __libc_free,
};

static struct allocator next_allocator;
static const struct allocator *_Atomic known_allocator;

static void find_one(void *to, enum shim_next which)
{
	void *found = shim_next_function(which);

	if (found)
		memcpy(to, &found, sizeof(found));
}

/* Threads that call this at the same time find the same functions. */
static const struct allocator *find_next(void)
{
	static __thread bool finding;
	struct allocator found = libc_allocator;
	int saved_errno = errno;

	if (finding)
		return &libc_allocator;
	finding = true;
	find_one(&found.malloc, NEXT_MALLOC);
	find_one(&found.calloc, NEXT_CALLOC);
	find_one(&found.realloc, NEXT_REALLOC);
	find_one(&found.aligned_alloc, NEXT_ALIGNED_ALLOC);
	find_one(&found.memalign, NEXT_MEMALIGN);
	find_one(&found.posix_memalign, NEXT_POSIX_MEMALIGN);
	find_one(&found.valloc, NEXT_VALLOC);
	find_one(&found.pvalloc, NEXT_PVALLOC);
	find_one(&found.free, NEXT_FREE);
	finding = false;
	next_allocator = found;
	atomic_store(&known_allocator, &next_allocator);
	errno = saved_errno;
	return &next_allocator;
}

static inline const struct allocator *get_next(void)
{
	const struct allocator *found =
		atomic_load_explicit(&known_allocator, memory_order_acquire);

	return __builtin_expect(found != NULL, 1) ? found : find_next();
}

void *shim_allocator(void)
{
	void *address;

	memcpy(&address, &get_next()->malloc, sizeof(address));
	return address;
}

static inline bool is_large(size_t size)
{
	return __builtin_expect(
		size >= atomic_load_explicit(&shim_ahead_least_block,
					     memory_order_relaxed),
		0);
}

/* Only what is watched lies between the two. */
static inline bool may_be_watched(const void *block)
{
	uintptr_t at = (uintptr_t)block;

	return __builtin_expect(
		at >= atomic_load_explicit(&shim_ahead_lowest,
					   memory_order_relaxed) &&
			at <= atomic_load_explicit(&shim_ahead_highest,
						   memory_order_relaxed),
		0);
}

/* Return: the block, which may be watched from now on. */
static inline void *tell_of(void *block, size_t size, const void *caller)
{
	if (is_large(size) && block)
		shim_ahead_block(block, size, caller);
	return block;
}

KTASK_API void *malloc(size_t size)
{
	return tell_of(get_next()->malloc(size), size,
		       __builtin_return_address(0));
}

KTASK_API void *calloc(size_t nr, size_t size)
{
	void *block = get_next()->calloc(nr, size);
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &bytes))
		return block;
	return tell_of(block, bytes, __builtin_return_address(0));
}

/* It moves the block, or not: the kernel may do it, by mremap(). */
KTASK_API void *realloc(void *block, size_t size)
{
	if (may_be_watched(block))
		shim_ahead_stop_block(block, true);
	return tell_of(get_next()->realloc(block, size), size,
		       __builtin_return_address(0));
}

KTASK_API void *aligned_alloc(size_t align, size_t size)
{
	return tell_of(get_next()->aligned_alloc(align, size), size,
		       __builtin_return_address(0));
}

KTASK_API void *memalign(size_t align, size_t size)
{
	return tell_of(get_next()->memalign(align, size), size,
		       __builtin_return_address(0));
}

KTASK_API int posix_memalign(void **block, size_t align, size_t size)
{
	int error = get_next()->posix_memalign(block, align, size);

	if (!error)
		tell_of(*block, size, __builtin_return_address(0));
	return error;
}

KTASK_API void *valloc(size_t size)
{
	return tell_of(get_next()->valloc(size), size,
		       __builtin_return_address(0));
}

KTASK_API void *pvalloc(size_t size)
{
	return tell_of(get_next()->pvalloc(size), size,
		       __builtin_return_address(0));
}

KTASK_API void free(void *block)
{
	if (may_be_watched(block))
		shim_ahead_stop_block(block, false);
	get_next()->free(block);
}
