/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where oneTBB's threads work, from start() to stop() of the cases.
 */
#ifndef BENCH_TASKS_TBB_ARENA_HPP
#define BENCH_TASKS_TBB_ARENA_HPP

#include <memory>

#include <tbb/task_arena.h>

extern std::unique_ptr<tbb::task_arena> arena;

#endif /* BENCH_TASKS_TBB_ARENA_HPP */
