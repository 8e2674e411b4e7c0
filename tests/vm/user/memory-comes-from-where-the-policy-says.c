/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whoever of the threads makes a page, it comes from the node that the caller's
 * memory policy, or the mapping's, names; and without a policy from the
 * caller's own node.  Looked at page by page, with move_pages(2).
 */
#include "sys.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <ktask/ops.h>

#define MIB (1ull << 20)
#define LEN (48 * MIB)
#define PAGE 4096
#define NR_PAGES (LEN / PAGE)
/* Jobs without a helper show nothing. */
#define TRIES 40

static struct sys_node nodes[SYS_NODES_MAX];
static unsigned nr_nodes;
static void *pages[NR_PAGES];
static int where[NR_PAGES];

static int bind_caller(void **state)
{
	nr_nodes = sys_nodes(nodes);
	sched_setaffinity(0, sizeof(nodes[0].cpus), &nodes[0].cpus);
	return 0;
}

static int restore_caller(void **state)
{
	cpu_set_t all = sys_list(SYS_CPU "/online");

	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	sched_setaffinity(0, sizeof(all), &all);
	return 0;
}

static void need_nodes(void)
{
	if (nr_nodes < 2)
		ktest_skip("a machine of one node");
}

static char *map_pages(void)
{
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	madvise(at, LEN, MADV_NOHUGEPAGE);
	return at;
}

static unsigned count_on(char *at, int id)
{
	unsigned nr = 0;

	for (size_t i = 0; i < NR_PAGES; i++)
		pages[i] = at + i * PAGE;
	assert_int_equal(
		syscall(SYS_move_pages, 0, NR_PAGES, pages, NULL, where, 0), 0);
	for (size_t i = 0; i < NR_PAGES; i++)
		nr += where[i] == id;
	return nr;
}

static void set_policy(int mode, unsigned long mask)
{
	assert_int_equal(syscall(SYS_set_mempolicy, mode, &mask, 64), 0);
}

/*
 * @mode, @mask: of the mapping, or -1
 *
 * Populates until a helper took part.  Return: the mapping.
 */
static char *populate_helped(const char *op, int mode, unsigned long mask)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	char *at = NULL;

	opts.result = &result;
	for (int i = 0; i < TRIES; i++) {
		struct ktask_op_args args = { .struct_size = sizeof(args),
					      .len = LEN };

		at = map_pages();
		args.addr = at;
		if (mode >= 0)
			assert_int_equal(
				syscall(SYS_mbind, at, LEN, mode, &mask, 64, 0),
				0);
		assert_int_equal(ktask_op_run(ktask_op_find(op), &args, &opts),
				 0);
		if (result.threads > 1)
			return at;
		munmap(at, LEN);
	}
	fail_msg("no helper in %d jobs", TRIES);
	return at;
}

static unsigned other_with_memory(void)
{
	for (unsigned i = nr_nodes - 1; i; i--)
		if (nodes[i].memory)
			return i;
	return 0;
}

/* All but what the kernel could not hold at that moment. */
#define assert_nearly_all(nr) assert_in_range(nr, NR_PAGES * 98 / 100, NR_PAGES)

static void on_the_callers_node_without_a_policy(void **state)
{
	char *at;

	need_nodes();
	at = populate_helped("populate", -1, 0);
	assert_nearly_all(count_on(at, nodes[0].id));
	munmap(at, LEN);
}

static void on_the_node_that_the_mapping_is_bound_to(void **state)
{
	unsigned i;
	char *at;

	need_nodes();
	i = other_with_memory();
	at = populate_helped("populate", MPOL_BIND, 1ul << nodes[i].id);
	assert_int_equal(count_on(at, nodes[i].id), NR_PAGES);
	munmap(at, LEN);
}

static void on_the_node_that_the_caller_is_bound_to(void **state)
{
	unsigned i;
	char *at;

	need_nodes();
	i = other_with_memory();
	set_policy(MPOL_BIND, 1ul << nodes[i].id);
	at = populate_helped("fill", -1, 0);
	assert_int_equal(count_on(at, nodes[i].id), NR_PAGES);
	munmap(at, LEN);
}

static void on_the_preferred_node(void **state)
{
	unsigned i;
	char *at;

	need_nodes();
	i = other_with_memory();
	set_policy(MPOL_PREFERRED, 1ul << nodes[i].id);
	at = populate_helped("populate", -1, 0);
	assert_nearly_all(count_on(at, nodes[i].id));
	munmap(at, LEN);
}

static void on_all_nodes_in_turn(void **state)
{
	unsigned i;
	char *at;

	need_nodes();
	i = other_with_memory();
	set_policy(MPOL_INTERLEAVE, 1ul << nodes[i].id | 1ul << nodes[0].id);
	at = populate_helped("populate", -1, 0);
	assert_in_range(count_on(at, nodes[i].id), NR_PAGES * 45 / 100,
			NR_PAGES * 55 / 100);
	munmap(at, LEN);
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, bind_caller, restore_caller)

KTEST_MAIN(T(on_the_callers_node_without_a_policy),
	   T(on_the_node_that_the_mapping_is_bound_to),
	   T(on_the_node_that_the_caller_is_bound_to), T(on_the_preferred_node),
	   T(on_all_nodes_in_turn))
