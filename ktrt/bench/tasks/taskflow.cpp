/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cases by Taskflow: asynchronous tasks; dependences by its graphs.
 */
#include <memory>
#include <vector>

#include <taskflow/taskflow.hpp>

#include "bench/tasks/cases.h"

namespace
{

std::unique_ptr<tf::Executor> executor;

void start(int threads)
{
	executor = std::make_unique<tf::Executor>(threads);
}

void stop()
{
	executor.reset();
}

template <typename F> void many(int nr, F body)
{
	executor->async([=] {
			for (int i = 0; i < nr; i++)
				executor->silent_async(body);
		})
		.wait();
	executor->wait_for_all();
}

void empty(int nr)
{
	many(nr, [] { task_nothing(); });
}

void makers(int nr, int threads)
{
	for (int i = 0; i < threads; i++)
		executor->silent_async([=] {
			for (int j = 0; j < nr / threads; j++)
				executor->silent_async([] { task_nothing(); });
		});
	executor->wait_for_all();
}

void chain(int nr)
{
	tf::Taskflow flow;
	tf::Task before;

	for (int i = 0; i < nr; i++) {
		auto task = flow.emplace([] { task_nothing(); });

		if (i)
			before.precede(task);
		before = task;
	}
	executor->run(flow).wait();
}

void fans(int nr)
{
	tf::Taskflow flow;
	std::vector<tf::Task> readers;

	for (int i = 0; i < nr; i++) {
		auto writer = flow.emplace([] { task_nothing(); });

		for (auto &reader : readers)
			reader.precede(writer);
		readers.clear();
		for (int j = 0; j < 16; j++) {
			readers.push_back(flow.emplace([] { task_nothing(); }));
			writer.precede(readers.back());
		}
	}
	executor->run(flow).wait();
}

long do_fib(int n, tf::Runtime &runtime)
{
	long one, two;

	if (n < 2)
		return n;
	runtime.silent_async(
		[&, n](tf::Runtime &below) { one = do_fib(n - 1, below); });
	runtime.silent_async(
		[&, n](tf::Runtime &below) { two = do_fib(n - 2, below); });
	runtime.corun();
	return one + two;
}

long fib(int n)
{
	tf::Taskflow flow;
	long result = 0;

	flow.emplace(
		[&](tf::Runtime &runtime) { result = do_fib(n, runtime); });
	executor->run(flow).wait();
	return result;
}

void work(int nr, int ns)
{
	many(nr, [ns] { task_work(ns); });
}

void block(int nr)
{
	many(nr, [] { task_block(); });
}

tf::Taskflow made;

void make_graph(const struct task_graph *graph)
{
	std::vector<tf::Task> tasks;
	int points[BEFORE_MAX];

	for (int i = 0; i < graph->steps * graph->width; i++) {
		int step = i / graph->width;
		int nr = step ? graph->before(graph->width, step,
					      i % graph->width, points)
			      : 0;

		tasks.push_back(made.emplace([=] { task_point(i); }));
		while (nr--)
			tasks[(step - 1) * graph->width + points[nr]].precede(
				tasks[i]);
	}
}

void run_graph(const struct task_graph *)
{
	executor->run(made).wait();
}

void wake()
{
	executor->async([] { task_stamp(); }).wait();
}

} /* namespace */

extern "C" {
extern const struct runtime_cases cases;
const struct runtime_cases cases = {
	start, stop, empty, makers, chain, fans,
	fib,   work, block, wake,   wake,  nullptr,
	make_graph, run_graph
};
}
