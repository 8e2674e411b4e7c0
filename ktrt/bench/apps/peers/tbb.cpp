/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * oneTBB: the graph is made of nodes and edges first (its flow graph), then
 * released at once.
 */
#include <deque>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "peer.h"

namespace flow = oneapi::tbb::flow;
using node = flow::continue_node<flow::continue_msg>;

namespace
{

class heat_graph {
    public:
	explicit heat_graph(const plan &plan)
		: plan_(plan), blocks_(plan.rows * plan.cols, nullptr)
	{
		for (unsigned sweep = 1; sweep <= plan.sweeps; sweep++)
			add_sweep(sweep);
	}
	void run()
	{
		/* All nodes are there: those without an edge to them go. */
		for (node *first : first_)
			first->try_put(flow::continue_msg());
		graph_.wait_for_all();
	}

    private:
	template <typename F>
	node *add(F body, std::initializer_list<node *> before)
	{
		nodes_.emplace_back(graph_, [body](const flow::continue_msg &) {
			body();
		});
		node *added = &nodes_.back();
		bool any = false;

		for (node *one : before) {
			if (one)
				flow::make_edge(*one, *added);
			any = any || one;
		}
		if (!any)
			first_.push_back(added);
		return added;
	}
	node *block(unsigned row, unsigned col) const
	{
		return row < plan_.rows && col < plan_.cols
			       ? blocks_[row * plan_.cols + col]
			       : nullptr;
	}
	/* Of the last sweep south, east and itself; of this north and west. */
	void add_block(unsigned sweep, unsigned row, unsigned col, node *begun,
		       node *sealed)
	{
		peer *peer = plan_.peer;
		node *added = add(
			[=] { peer_block(peer, sweep, row, col); },
			{ block(row, col), block(row + 1, col),
			  block(row, col + 1), row ? block(row - 1, col) : nullptr,
			  col ? block(row, col - 1) : nullptr, begun });

		blocks_[row * plan_.cols + col] = added;
		if (sealed)
			flow::make_edge(*added, *sealed);
	}
	void add_sweep(unsigned sweep)
	{
		node *begun = nullptr, *sealed = nullptr;
		peer *peer = plan_.peer;

		if (plan_writes(&plan_, sweep)) {
			node *&before = sealed_[sweep / plan_.every % 2];
			node *last = sealed_[(sweep / plan_.every + 1) % 2];

			begun = add([=] { peer_begin(peer, sweep); },
				    { begun_, before });
			sealed = add([=] { peer_seal(peer, sweep); },
				     { last, begun });
			begun_ = begun;
			before = sealed;
		}
		for (unsigned row = 0; row < plan_.rows; row++)
			for (unsigned col = 0; col < plan_.cols; col++)
				add_block(sweep, row, col, begun, sealed);
	}

	const plan &plan_;
	flow::graph graph_;
	std::deque<node> nodes_; /* which stay where they are */
	std::vector<node *> blocks_; /* the last sweep's */
	std::vector<node *> first_;
	node *begun_ = nullptr, *sealed_[2] = { nullptr, nullptr };
};

} /* namespace */

void peer_run(const struct plan *plan)
{
	oneapi::tbb::global_control limit(
		oneapi::tbb::global_control::max_allowed_parallelism,
		plan->workers);
	oneapi::tbb::task_arena arena(static_cast<int>(plan->workers));

	arena.execute([=] { heat_graph(*plan).run(); });
}
