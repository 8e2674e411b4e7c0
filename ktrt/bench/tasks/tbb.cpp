/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cases by oneTBB: task groups; dependences by flow graphs.
 */
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include <semaphore.h>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "bench/tasks/cases.h"
#include "bench/tasks/tbb_arena.hpp"

std::unique_ptr<tbb::task_arena> arena;

namespace
{

std::unique_ptr<tbb::global_control> control;

void start(int threads)
{
	control = std::make_unique<tbb::global_control>(
		tbb::global_control::max_allowed_parallelism, threads);
	arena = std::make_unique<tbb::task_arena>(threads);
	arena->initialize();
}

void stop()
{
	arena.reset();
	control.reset();
}

template <typename F> void many(int nr, F body)
{
	arena->execute([&] {
		tbb::task_group group;

		for (int i = 0; i < nr; i++)
			group.run(body);
		group.wait();
	});
}

void empty(int nr)
{
	many(nr, [] { task_nothing(); });
}

void makers(int nr, int threads)
{
	arena->execute([&] {
		tbb::task_group all;

		for (int i = 0; i < threads; i++)
			all.run([=] {
				tbb::task_group group;

				for (int j = 0; j < nr / threads; j++)
					group.run([] { task_nothing(); });
				group.wait();
			});
		all.wait();
	});
}

using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

void nothing(const tbb::flow::continue_msg &)
{
	task_nothing();
}

void chain(int nr)
{
	arena->execute([&] {
		tbb::flow::graph graph;
		std::deque<node> nodes;

		for (int i = 0; i < nr; i++) {
			nodes.emplace_back(graph, nothing);
			if (i)
				tbb::flow::make_edge(nodes[i - 1], nodes[i]);
		}
		nodes[0].try_put({});
		graph.wait_for_all();
	});
}

void fans(int nr)
{
	arena->execute([&] {
		tbb::flow::graph graph;
		std::deque<node> nodes;

		for (int i = 0; i < nr * 17; i++)
			nodes.emplace_back(graph, nothing);
		for (int i = 0; i < nr; i++)
			for (int j = 1; j <= 16; j++) {
				auto &reader = nodes[i * 17 + j];

				tbb::flow::make_edge(nodes[i * 17], reader);
				if (i + 1 < nr)
					tbb::flow::make_edge(
						reader, nodes[i * 17 + 17]);
			}
		nodes[0].try_put({});
		graph.wait_for_all();
	});
}

long do_fib(int n)
{
	tbb::task_group group;
	long one, two;

	if (n < 2)
		return n;
	group.run([&] { one = do_fib(n - 1); });
	group.run([&] { two = do_fib(n - 2); });
	group.wait();
	return one + two;
}

long fib(int n)
{
	return arena->execute([&] { return do_fib(n); });
}

void work(int nr, int ns)
{
	many(nr, [ns] { task_work(ns); });
}

void block(int nr)
{
	many(nr, [] { task_block(); });
}

/*
 * A graph by hand: each task counts those before it down, goes on with the first
 * that is ready and hands the others to its group.  With BENCH_TASKS_FLOW a flow
 * graph, made once as well.
 */
struct counted {
	std::atomic<int> left{ 0 };
	int before = 0, number = 0;
	std::vector<counted *> after;
};

const bool by_flow = getenv("BENCH_TASKS_FLOW");
std::deque<counted> by_hand;
std::unique_ptr<tbb::flow::graph> flow;
std::deque<node> flow_nodes;
/* Those that come after nothing. */
std::vector<int> first_ones;

/* calls back with each edge */
template <typename F> void each_edge(const struct task_graph *graph, F edge)
{
	int points[BEFORE_MAX];

	for (int i = 0; i < graph->steps * graph->width; i++) {
		int step = i / graph->width;
		int nr = step ? graph->before(graph->width, step,
					      i % graph->width, points)
			      : 0;

		if (!nr)
			first_ones.push_back(i);
		while (nr--)
			edge((step - 1) * graph->width + points[nr], i);
	}
}

void make_graph(const struct task_graph *graph)
{
	int nr = graph->steps * graph->width;

	if (!by_flow) {
		by_hand.resize(nr);
		for (int i = 0; i < nr; i++)
			by_hand[i].number = i;
		each_edge(graph, [](int before, int after) {
			by_hand[before].after.push_back(&by_hand[after]);
			by_hand[after].left = ++by_hand[after].before;
		});
		return;
	}
	arena->execute([=] {
		flow = std::make_unique<tbb::flow::graph>();
		for (int i = 0; i < nr; i++)
			flow_nodes.emplace_back(
				*flow, [i](const tbb::flow::continue_msg &) {
					task_point(i);
				});
		each_edge(graph, [](int before, int after) {
			tbb::flow::make_edge(flow_nodes[before],
					     flow_nodes[after]);
		});
	});
}

void run_counted(counted *one, tbb::task_group &group)
{
	while (one) {
		counted *next = nullptr;

		task_point(one->number);
		for (counted *after : one->after) {
			if (--after->left)
				continue;
			after->left = after->before;
			if (!next)
				next = after;
			else
				group.run([=, &group] {
					run_counted(after, group);
				});
		}
		one = next;
	}
}

void run_graph(const struct task_graph *)
{
	arena->execute([=] {
		tbb::task_group group;

		for (int i : first_ones)
			if (by_flow)
				flow_nodes[i].try_put({});
			else
				group.run([=, &group] {
					run_counted(&by_hand[i], group);
				});
		if (by_flow)
			flow->wait_for_all();
		group.wait();
	});
}

/* The caller waits without working, as it would have to do something else. */
void wake()
{
	bool done = false;

	arena->enqueue([&] {
		task_stamp();
		__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	});
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		;
}

void wake_task()
{
	sem_t done;

	sem_init(&done, 0, 0);
	arena->enqueue([&] {
		task_stamp();
		sem_post(&done);
	});
	while (sem_wait(&done))
		;
	sem_destroy(&done);
}

void loop(size_t nr)
{
	arena->execute([=] {
		tbb::parallel_for(size_t(0), nr,
				  [=](size_t i) { task_index(i, nr); });
	});
}

} /* namespace */

extern "C" {
extern const struct runtime_cases cases;
const struct runtime_cases cases = {
	start, stop,  empty, makers,	chain,	 fans,	     fib,
	work,  block, wake,  wake_task, nullptr, make_graph, run_graph,
	loop,  &programs, nullptr, nullptr, nullptr
};
}
