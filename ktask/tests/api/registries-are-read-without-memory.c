/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The registries of all users are gone through, and read, without an allocation: a job
 * that does so may have been started by an allocator, which holds its lock, or by a
 * handler that has interrupted one.  Nothing is mapped either: a helper would wait for
 * threads that populate memory, and hold the lock of the process's mappings.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ktest.h"

#include "core/deps.h"
#include "user/limits/registry.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	!defined(__LP64__)

static void no_memory_is_allocated(void **state)
{
	ktest_skip("the allocator is the sanitizer's, or mmap2() is called");
}

#else

void *__libc_malloc(size_t size);
void *malloc(size_t size);

static unsigned nr_allocations, nr_mappings, nr_registries, nr_entries;

/* Also what the C library allocates. */
void *malloc(size_t size)
{
	nr_allocations++;
	return __libc_malloc(size);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	nr_mappings++;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

static void count_entry(const struct registry_entry *entry, void *arg)
{
	nr_entries++;
}

static void read_registry(const char *name, uid_t uid, void *arg)
{
	nr_registries += registry_read(name, uid, count_entry, NULL);
}

static void no_memory_is_allocated(void **state)
{
	struct registry *registry;
	unsigned allocations, mappings;
	uint32_t used;

	free(malloc(1));
	ktest_check(nr_allocations > 0);
	registry = registry_open();
	ktest_check(registry != NULL);
	ktest_check(nr_mappings > 0);
	/* More than are read by one call. */
	used = registry->head.nr_entries;
	kt_store(&registry->head.nr_entries, REGISTRY_ENTRIES);
	allocations = nr_allocations;
	mappings = nr_mappings;
	ktest_check(registry_for_each(read_registry, NULL));
	ktest_check(nr_registries > 0);
	ktest_check(nr_entries >= REGISTRY_ENTRIES);
	assert_int_equal(nr_allocations, allocations);
	assert_int_equal(nr_mappings, mappings);
	kt_store(&registry->head.nr_entries, used);
}

#endif

KTEST_MAIN(KTEST(no_memory_is_allocated))
