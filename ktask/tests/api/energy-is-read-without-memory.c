/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whether the machine saves energy is found out without an allocation, also with many
 * policies: a job that runs does so, and to allocate may take the lock of the process's
 * mappings, which threads that populate memory hold.
 */
#include "ktest.h"
#include "tree.h"

#include "user/limits/energy.h"

#define NR_POLICIES 100

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

static void no_memory_is_allocated(void **state)
{
	ktest_skip("the allocator is the sanitizer's");
}

#else

void *__libc_malloc(size_t size);
void *malloc(size_t size);

static unsigned nr_allocations;
static struct tree tree;

/* Also what the C library allocates: it must see this one. */
__attribute__((visibility("default"))) void *malloc(size_t size)
{
	nr_allocations++;
	return __libc_malloc(size);
}

static void put_policy(unsigned nr)
{
	char path[128];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpufreq/policy%u/scaling_governor",
		 nr);
	tree_put(&tree, path, "powersave\n");
}

static void no_memory_is_allocated(void **state)
{
	unsigned allocations;
	char why[256] = "";

	free(malloc(1));
	assert_true(nr_allocations > 0);
	tree_begin(&tree);
	for (unsigned i = 0; i < NR_POLICIES; i++)
		put_policy(i);
	tree_put(&tree, "/sys/class/power_supply/AC/type", "Mains\n");
	tree_put(&tree, "/sys/class/power_supply/AC/online", "1\n");
	allocations = nr_allocations;
	assert_true(energy_saving(tree.root, why, sizeof(why)));
	assert_int_equal(nr_allocations, allocations);
	tree_end(&tree);
}

#endif

KTEST_MAIN(KTEST(no_memory_is_allocated))
