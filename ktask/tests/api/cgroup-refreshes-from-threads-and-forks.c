/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One thread looks and the others use what it found; a child that is forked
 * while a thread of its parent looks is not held up and looks for itself.
 */
#include "ktest.h"
#include "tree.h"

#include <pthread.h>

#include "user/limits/cgroup.h"

#define THREADS 3
#define FORKS 60
/* A look that takes long, because the machine is busy, puts off the next by 64
 * times as much. */
#define STEP_NS 1000000000000ull

static struct tree ours, childs;
static uint64_t clock_ns = STEP_NS;
static uint32_t stop;
static uint32_t wrong;

/* A clock of its own: at each call all is due. */
static unsigned refresh_threads(void)
{
	return cgroup_threads(
		__atomic_add_fetch(&clock_ns, STEP_NS, __ATOMIC_RELAXED));
}

static void plant_group(struct tree *tree, const char *quota)
{
	tree_begin(tree);
	tree_put(tree, "/proc/self/cgroup", "0::/box\n");
	tree_put(tree, "/proc/self/mountinfo",
		 "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	tree_put(tree, "/cg/box/cpu.max", quota);
	tree_put(tree, "/cg/box/cpu.stat", "nr_throttled 0\n");
}

static void *refresh_often(void *arg)
{
	while (!kt_load(&stop))
		if (refresh_threads() != 3)
			kt_store(&wrong, 1);
	return NULL;
}

static int refresh_in_child(void *arg)
{
	file_root = childs.root;
	ktest_check(refresh_threads() == 7);
	ktest_check(refresh_threads() == 7);
	return 0;
}

static void threads_and_forks(void **state)
{
	pthread_t threads[THREADS];

	plant_group(&ours, "300000 100000\n");
	plant_group(&childs, "700000 100000\n");
	file_root = ours.root;
	assert_int_equal(refresh_threads(), 3);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, refresh_often, NULL),
			0);
	for (int i = 0; i < FORKS; i++)
		assert_int_equal(ktest_in_child(refresh_in_child, NULL), 0);
	kt_store(&stop, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	tree_end(&ours);
	tree_end(&childs);
}

KTEST_MAIN(KTEST(threads_and_forks))
