/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Large memset, memcpy and mempcpy, on request (`ktask run --stores`): a second
 * shared object, so that programs without it keep the C library's functions,
 * which are called millions of times a second.
 *
 * A large one goes to the shim (shim_store()); it says no where it may not, and
 * then, as for small ones, the C library's function does it.  That is found by
 * the loader when this object's constructor runs; calls before it are done here,
 * byte after byte.
 *
 * Knows nothing of the library; the shim is asked by name, so that this object
 * alone does nothing.  Memory that overlaps is the C library's as well: nothing
 * is promised for it, but programs that get away with it shall go on doing so.
 *
 * Where it behaves badly: a fault may happen in a helper, which has no handler's
 * stack of the program; calls that the compiler expands, and those from within
 * libc, are not seen.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* In preload/store.c; @src: NULL to fill with @byte. */
extern bool shim_store(void *dst, const void *src, int byte, size_t len,
		       const void *from) __attribute__((weak));
extern size_t shim_store_min __attribute__((weak));

EXPORT void *memset(void *dst, int byte, size_t len);
EXPORT void *memcpy(void *dst, const void *src, size_t len);
EXPORT void *mempcpy(void *dst, const void *src, size_t len);

static void *(*next_memset)(void *dst, int byte, size_t len);
static void *(*next_memcpy)(void *dst, const void *src, size_t len);
static const size_t never = SIZE_MAX;
static const size_t *min_bytes = &never;

static void __attribute__((constructor)) init(void)
{
	next_memset =
		(void *(*)(void *, int, size_t))dlsym(RTLD_NEXT, "memset");
	next_memcpy = (void *(*)(void *, const void *, size_t))dlsym(RTLD_NEXT,
								     "memcpy");
	if (&shim_store_min && shim_store)
		min_bytes = &shim_store_min;
}

static void fill_bytes(volatile char *dst, int byte, size_t len)
{
	while (len--)
		*dst++ = (char)byte;
}

static void copy_bytes(volatile char *dst, const char *src, size_t len)
{
	while (len--)
		*dst++ = *src++;
}

static bool apart(const void *a, const void *b, size_t len)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return (x < y ? y - x : x - y) >= len;
}

EXPORT void *memset(void *dst, int byte, size_t len)
{
	if (__builtin_expect(len >= *min_bytes, 0) &&
	    shim_store(dst, NULL, byte, len, __builtin_return_address(0)))
		return dst;
	if (__builtin_expect(next_memset != NULL, 1))
		return next_memset(dst, byte, len);
	fill_bytes(dst, byte, len);
	return dst;
}

EXPORT void *memcpy(void *dst, const void *src, size_t len)
{
	if (__builtin_expect(len >= *min_bytes, 0) && apart(dst, src, len) &&
	    shim_store(dst, src, 0, len, __builtin_return_address(0)))
		return dst;
	if (__builtin_expect(next_memcpy != NULL, 1))
		return next_memcpy(dst, src, len);
	copy_bytes(dst, src, len);
	return dst;
}

EXPORT void *mempcpy(void *dst, const void *src, size_t len)
{
	return (char *)memcpy(dst, src, len) + len;
}
