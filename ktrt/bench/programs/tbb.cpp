/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The programs by task groups of oneTBB, in the arena of the cases.
 */
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "bench/programs/forks.hpp"
#include "bench/tasks/cases.h"
#include "bench/tasks/tbb_arena.hpp"

namespace
{

using tbb::task_group;

long count_queens(const struct queens *top)
{
	return arena->execute([=] { return forks::queens<task_group>(*top); });
}

void sort_all(const sort_part *all)
{
	arena->execute([=] { forks::sort<task_group>(*all); });
}

void factor(const lu_matrix *matrix)
{
	arena->execute([=] { forks::factor<task_group>(matrix); });
}

long count_tree(const tree_node *root)
{
	return arena->execute([=] { return forks::tree<task_group>(*root); });
}

} /* namespace */

extern "C" {
const struct runtime_programs programs = { count_queens, sort_all, factor,
					   count_tree };
}
