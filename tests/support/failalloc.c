/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The wrappers behind failalloc.h.  The linker gives each call of NAME to
 * __wrap_NAME and the original as __real_NAME.
 */
#include "failalloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Kinds is zero while nothing is armed; read by every thread. */
static atomic_uint armed_kinds;
static atomic_uint nr_seen;
static atomic_uint nr_refused;
static atomic_uint fail_first;
static atomic_uint fail_last;

static void arm_range(unsigned first, unsigned last, unsigned kinds)
{
	atomic_store(&armed_kinds, 0);
	atomic_store(&nr_seen, 0);
	atomic_store(&nr_refused, 0);
	atomic_store(&fail_first, first);
	atomic_store(&fail_last, last);
	atomic_store(&armed_kinds, kinds);
}

void failalloc_arm(unsigned nth)
{
	arm_range(nth, nth, FAILALLOC_ALL);
}

void failalloc_arm_for(unsigned nth, unsigned kinds)
{
	arm_range(nth, nth, kinds);
}

void failalloc_arm_from(unsigned nth, unsigned kinds)
{
	arm_range(nth, -1u, kinds);
}

unsigned failalloc_disarm(void)
{
	atomic_store(&armed_kinds, 0);
	return atomic_load(&nr_refused);
}

unsigned failalloc_seen(void)
{
	return atomic_load(&nr_seen);
}

static int must_refuse(unsigned kind)
{
	unsigned number;

	if (!(atomic_load(&armed_kinds) & kind))
		return 0;
	number = atomic_fetch_add(&nr_seen, 1) + 1;
	if (number < atomic_load(&fail_first) ||
	    number > atomic_load(&fail_last))
		return 0;
	atomic_fetch_add(&nr_refused, 1);
	return 1;
}

static int refuse_memory(void)
{
	if (!must_refuse(FAILALLOC_MEMORY))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return refuse_memory() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size)
{
	return refuse_memory() ? NULL : __real_calloc(nr, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
	return refuse_memory() ? NULL : __real_realloc(old, size);
}

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return refuse_memory() ? NULL : __real_aligned_alloc(align, size);
}

/* Says so by its value; errno stays as it was. */
int __real_posix_memalign(void **out, size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
	return must_refuse(FAILALLOC_MEMORY)
		       ? ENOMEM
		       : __real_posix_memalign(out, align, size);
}

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset)
{
	if (must_refuse(FAILALLOC_MMAP)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(addr, len, prot, flags, fd, offset);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*func)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*func)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*func)(void *), void *arg)
{
	return must_refuse(FAILALLOC_THREAD)
		       ? EAGAIN
		       : __real_pthread_create(thread, attr, func, arg);
}
