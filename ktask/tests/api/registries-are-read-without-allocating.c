/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The registries of all users are gone through, and read, without an allocation: a job
 * that does so may have been started by an allocator, which holds its lock, or by a
 * handler that has interrupted one.
 */
#include "ktest.h"

#include "user/limits/registry.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

static void no_memory_is_allocated(void **state)
{
	ktest_skip("the allocator is the sanitizer's");
}

#else

void *__libc_malloc(size_t size);
void *malloc(size_t size);

static unsigned nr_allocations, nr_registries;

/* Also what the C library allocates. */
void *malloc(size_t size)
{
	nr_allocations++;
	return __libc_malloc(size);
}

static void read_registry(const char *name, uid_t uid, void *arg)
{
	struct registry_head *head = registry_read(name, uid);

	nr_registries += head != NULL;
	registry_unread(head);
}

static void no_memory_is_allocated(void **state)
{
	unsigned before;

	free(malloc(1));
	ktest_check(nr_allocations > 0);
	ktest_check(registry_open() != NULL);
	before = nr_allocations;
	ktest_check(registry_for_each(read_registry, NULL));
	ktest_check(nr_registries > 0);
	assert_int_equal(nr_allocations, before);
}

#endif

KTEST_MAIN(KTEST(no_memory_is_allocated))
