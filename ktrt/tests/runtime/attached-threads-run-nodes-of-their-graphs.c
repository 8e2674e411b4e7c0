/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread that runs a graph does nodes itself, all of them if no worker can, and no
 * worker is woken for its CPU: where the functions of nodes are known to be brief.  Others are
 * done by workers, and so are the rest of those that turn long.
 */
#include "support/blocked_worker.h"

#define NODES 300
#define WIDTH 5
/* No such node is brief. */
#define LONG_NS 100000

static const unsigned all_flags[] = { 0, KTRT_NO_UMT, KTRT_UMT_FIRST,
				      KTRT_NO_UMT | KTRT_UNBOUND };

/* ---- graphs ---- */

/* What one node waits for. */
enum shape { LOOSE, LINE, STENCIL, NR_SHAPES };

static void add_edges(struct ktrt_graph *graph, enum shape shape, int node)
{
	int point = node % WIDTH;

	if (shape == LINE && node)
		ktest_check(!ktrt_graph_edge(graph, node - 1, node));
	if (shape != STENCIL || node < WIDTH)
		return;
	for (int other = point - 1; other <= point + 1; other++)
		if (other >= 0 && other < WIDTH)
			ktest_check(!ktrt_graph_edge(
				graph, node - WIDTH - point + other, node));
}

/* @priorities: of every third node */
static struct ktrt_graph *new_graph(enum shape shape, ktrt_func func, void *arg,
				    bool priorities)
{
	struct ktrt_graph *graph;

	ktest_check(!ktrt_graph_new(&graph));
	for (int node = 0; node < NODES; node++) {
		struct ktrt_attr attr = KTRT_ATTR_INIT;

		if (priorities && node % 3 == 0)
			attr.priority = node % 7 - 3;
		ktest_check(ktrt_graph_add(graph, func, arg, &attr) == node);
		add_edges(graph, shape, node);
	}
	return graph;
}

/* The worker does nodes until it is known that they are brief.  Return: false if they are not. */
static bool let_be_known(struct ktrt_graph *graph, ktrt_func func)
{
	uint64_t late_ns = ktest_now_ns() + LATE_NS;

	do
		ktest_check(!ktrt_graph_run(graph));
	while (func_kind(func) != FUNC_BRIEF && ktest_now_ns() < late_ns);
	assert_int_not_equal(func_kind(func), FUNC_UNKNOWN);
	return func_kind(func) == FUNC_BRIEF;
}

static bool run_here(struct ktrt_graph *graph, ktrt_func func, int code,
		     unsigned long wanted)
{
	for (int i = 0; i < TRIES && let_be_known(graph, func); i++) {
		block_the_worker(func, free_worker_if_late);
		assert_int_equal(ktrt_graph_run(graph), code);
		if (check_all_here(wanted))
			return true;
	}
	return false;
}

static void skip_unless(bool are_brief)
{
	if (!are_brief)
		ktest_skip("nodes take too long on a machine this busy");
}

/* ---- without a worker ---- */

static int count_node(void *arg)
{
	count_done();
	pthread_testcancel();
	return 0;
}

static void no_worker_is_needed(void **state)
{
	bool are_brief = true;

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(all_flags) && are_brief; i++) {
		start_with_one(all_flags[i]);
		for (int j = 0; j < 2 * NR_SHAPES && are_brief; j++) {
			struct ktrt_graph *graph = new_graph(
				j % NR_SHAPES, count_node, NULL, j / NR_SHAPES);

			are_brief = run_here(graph, count_node, 0, NODES);
			ktrt_graph_free(graph);
		}
		stop_with_one();
	}
	skip_unless(are_brief);
}

static int count_child(void *arg)
{
	count_done();
	return 0;
}

/* @arg: it waits for its children. */
static int make_children(void *arg)
{
	count_done();
	if (ktrt_spawn(count_child, NULL) || ktrt_spawn(count_child, NULL))
		return -ENOMEM;
	return arg ? ktrt_wait() : 0;
}

static void children_of_nodes_are_reached(void **state)
{
	static char waits;
	bool are_brief = true;

	start_with_one(KTRT_NO_UMT);
	for (int i = 0; i < 2 * NR_SHAPES && are_brief; i++) {
		struct ktrt_graph *graph =
			new_graph(i % NR_SHAPES, make_children,
				  i / NR_SHAPES ? &waits : NULL, false);

		for (int j = 0; j < TRIES && are_brief; j++) {
			/* A node is timed with those for which it waits. */
			are_brief = let_be_known(graph, make_children);
			func_classify(count_child, true);
			block_the_worker(make_children, free_worker_if_late);
			func_classify(count_child, true);
			assert_int_equal(ktrt_graph_run(graph), 0);
			if (check_all_here(3ul * NODES))
				break;
		}
		ktrt_graph_free(graph);
	}
	stop_with_one();
	skip_unless(are_brief);
}

/* ---- failures ---- */

static unsigned long fails_at;

static int fail_sometimes(void *arg)
{
	count_done();
	return fails_at && get(nr_done) == fails_at ? 77 : 0;
}

/* What follows a node that failed is skipped here, too. */
static void codes_reach_who_runs_the_graph(void **state)
{
	struct ktrt_graph *graph;
	bool are_brief = true;

	start_with_one(KTRT_NO_UMT);
	graph = new_graph(LINE, fail_sometimes, NULL, false);
	for (unsigned long at = 1; at < NODES && are_brief; at += 50) {
		are_brief = let_be_known(graph, fail_sometimes);
		block_the_worker(fail_sometimes, free_worker_if_late);
		fails_at = at;
		assert_int_equal(ktrt_graph_run(graph), 77);
		fails_at = 0;
		check_all_here(at);
	}
	ktrt_graph_free(graph);
	stop_with_one();
	skip_unless(are_brief);
}

/* ---- workers ---- */

/* The worker of the thread's CPU sleeps on, however few nodes begin the run. */
static void no_worker_is_woken_for_its_cpu(void **state)
{
	bool are_brief = true;

	start_with_one(KTRT_NO_UMT);
	for (int i = 0; i < NR_SHAPES && are_brief; i++) {
		struct ktrt_graph *graph =
			new_graph(i, count_node, NULL, false);
		struct ktrt_info before = KTRT_INFO_INIT,
				 after = KTRT_INFO_INIT;

		for (int j = 0; j < TRIES; j++) {
			are_brief = let_be_known(graph, count_node);
			if (!are_brief)
				break;
			assert_true(holds_soon(idle_cores() == 1));
			assert_int_equal(ktrt_info_get(&before), 0);
			set(nr_done, 0);
			set(nr_here, 0);
			assert_int_equal(ktrt_graph_run(graph), 0);
			if (func_kind(count_node) != FUNC_BRIEF)
				continue;
			assert_int_equal(ktrt_info_get(&after), 0);
			assert_int_equal(get(nr_here), NODES);
			assert_int_equal(after.wakeups, before.wakeups);
			break;
		}
		assert_int_equal(get(nr_done), NODES);
		ktrt_graph_free(graph);
	}
	stop_with_one();
	skip_unless(are_brief);
}

static unsigned long nr_unseen;

static int count_unseen(void *arg)
{
	if (!at_peek(&self_worker->umt))
		more(nr_unseen);
	return count_node(arg);
}

/* To be seen takes longer than a small graph.  If UMT sees nobody on a core, that is no reason
 * to wake a worker there. */
static void umt_sees_those_who_stay(void **state)
{
	struct ktrt_graph *graph;

	start_with_one(KTRT_UMT_FIRST);
	graph = new_graph(LOOSE, count_unseen, NULL, false);
	for (int i = 0; i < TRIES; i++) {
		if (!at_load(&rt.watching) ||
		    !let_be_known(graph, count_unseen))
			break;
		block_the_worker(count_unseen, free_worker_if_late);
		set(nr_unseen, 0);
		assert_int_equal(ktrt_graph_run(graph), 0);
		if (!check_all_here(NODES))
			continue;
		assert_in_range(get(nr_unseen), 1, 64);
		assert_null(self_worker->umt);
		assert_int_equal(at_load(&rt.cores[0].arriving), 0);
		break;
	}
	ktrt_graph_free(graph);
	stop_with_one();
}

static int do_nothing(void *arg)
{
	return 0;
}

/* It does not wait for what it makes. */
static void *attach_and_spawn(void *arg)
{
	ktest_check(!ktrt_attach());
	ktest_check(!ktrt_spawn(do_nothing, NULL));
	ktest_check(!ktrt_detach());
	return NULL;
}

/* The last node ends with a task of another thread in its queue. */
static int await_other_at_end(void *arg)
{
	count_done();
	if (get(nr_done) < NODES || get(nr_here) < NODES)
		return 0;
	ktest_check(!pthread_create(&watching_thread, NULL, attach_and_spawn,
				    NULL));
	for (int i = 0; i < 1000 && !sched_work_visible(); i++)
		nap_us(1000);
	return 0;
}

/* The next wait must not take the worker that comes for that task for one that it waits for. */
static void no_worker_is_noted_behind_the_end(void **state)
{
	struct ktrt_graph *graph;
	bool was_here = false;

	start_with_one(KTRT_NO_UMT);
	graph = new_graph(LINE, await_other_at_end, NULL, false);
	for (int i = 0; i < TRIES && !was_here; i++) {
		func_classify(await_other_at_end, true);
		self_worker->lent = false;
		set(nr_done, 0);
		set(nr_here, 0);
		assert_int_equal(ktrt_graph_run(graph), 0);
		was_here = get(nr_here) == NODES;
		if (was_here)
			assert_false(self_worker->lent);
	}
	if (was_here)
		assert_int_equal(pthread_join(watching_thread, NULL), 0);
	ktrt_graph_free(graph);
	stop_with_one();
	skip_unless(was_here);
}

static void spend_long(void)
{
	uint64_t until = ktest_now_ns() + LONG_NS;

	while (ktest_now_ns() < until)
		;
}

static int count_long(void *arg)
{
	spend_long();
	count_done();
	return 0;
}

static int refuse_here(void *arg)
{
	return pthread_equal(pthread_self(), attached_thread) ? -EIO : 0;
}

/* Also those of whose function nothing is known. */
static void others_are_for_workers(void **state)
{
	ktrt_func refuse = refuse_here;
	struct ktrt_graph *graph;

	start_with_one(KTRT_NO_UMT);
	set(nr_here, 0);
	graph = new_graph(STENCIL, count_long, NULL, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ktrt_graph_run(graph), 0);
	assert_int_equal(get(nr_here), 0);
	ktrt_graph_free(graph);
	graph = new_graph(STENCIL, ktrt_dispatch, &refuse, false);
	for (int i = 0; i < 200; i++)
		assert_int_equal(ktrt_graph_run(graph), 0);
	ktrt_graph_free(graph);
	stop_with_one();
}

/* After so many nodes here all are long; it may do so many more. */
#define CHANGED 100ul
#define LEFT_AFTER 130ul

static bool changes;

static int turn_long(void *arg)
{
	count_done();
	if (changes && get(nr_here) >= CHANGED)
		spend_long();
	return 0;
}

static void what_turns_long_is_left(void **state)
{
	bool are_brief = true;

	for (int shape = 0; shape < NR_SHAPES && are_brief; shape++) {
		struct ktrt_graph *graph;
		unsigned long did = 0;

		start_with_one(KTRT_NO_UMT);
		graph = new_graph(shape, turn_long, NULL, false);
		for (int i = 0; i < TRIES && did < CHANGED && are_brief; i++) {
			are_brief = let_be_known(graph, turn_long);
			block_the_worker(turn_long, free_worker_if_late);
			changes = true;
			assert_int_equal(ktrt_graph_run(graph), 0);
			changes = false;
			set(is_over, 1);
			assert_int_equal(pthread_join(watching_thread, NULL),
					 0);
			assert_int_equal(ktrt_wait(), 0);
			assert_int_equal(get(was_late), 0);
			assert_int_equal(get(nr_done), NODES);
			did = get(nr_here);
			assert_in_range(did, 0, CHANGED + LEFT_AFTER);
		}
		ktrt_graph_free(graph);
		stop_with_one();
	}
	skip_unless(are_brief);
}

/* ---- threads that end ---- */

static bool leaves;

static int leave_sometimes(void *arg)
{
	count_done();
	if (get(leaves) && get(nr_done) == NODES / 2)
		pthread_exit(NULL);
	return 0;
}

static void *attach_and_end(void *graph)
{
	ktest_check(!ktrt_attach());
	ktrt_graph_run(graph);
	return graph;
}

/* The only worker is blocked, so nobody else does that node; those that are left are the
 * worker's, since a thread that ends runs none. */
static int lose_a_thread(void *arg)
{
	struct ktrt_graph *graph;
	pthread_t thread;
	void *result;
	int error;

	start_with_one(KTRT_NO_UMT);
	graph = new_graph(STENCIL, leave_sometimes, NULL, false);
	func_classify(leave_sometimes, true);
	assert_int_equal(ktrt_spawn(block_until_written, NULL), 0);
	assert_true(holds_soon(!sched_work_visible()));
	set(nr_done, 0);
	set(leaves, true);
	ktest_check(!pthread_create(&thread, NULL, attach_and_end, graph));
	ktest_check(holds_soon(get(nr_done) >= NODES / 2));
	ktest_check(write(pipe_ends[1], "x", 1) == 1);
	ktest_check(!pthread_join(thread, &result));
	ktest_check(!result);
	ktest_check(!at_load(&rt.cores[0].visitor));
	set(leaves, false);
	while ((error = ktrt_graph_run(graph)) == -EBUSY)
		nap_us(1000);
	ktest_check(!error);
	set(nr_done, 0);
	ktest_check(!ktrt_graph_run(graph));
	ktest_check(get(nr_done) == NODES);
	ktrt_graph_free(graph);
	ktest_check(!ktrt_stop());
	_exit(0);
}

static void a_thread_may_end_in_one(void **state)
{
	assert_int_equal(ktest_in_child(lose_a_thread, NULL), 0);
}

/* ---- many at a time ---- */

#define THREADS 4
#define ROUNDS 40

/* Plain: the nodes of a line come one after another. */
static int count_plainly(void *arg)
{
	++*(unsigned *)arg;
	return 0;
}

static void *run_own_graphs(void *arg)
{
	unsigned counted = 0;
	struct ktrt_graph *line, *stencil;

	ktest_check(!ktrt_attach());
	line = new_graph(LINE, count_plainly, &counted, false);
	stencil = new_graph(STENCIL, make_children, arg, true);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		ktest_check(!ktrt_graph_run(line));
		ktest_check(counted == i * NODES);
		ktest_check(!ktrt_graph_run(stencil));
		ktest_check(!ktrt_wait());
	}
	ktrt_graph_free(stencil);
	ktrt_graph_free(line);
	ktest_check(!ktrt_detach());
	return NULL;
}

static void several_run_graphs(void)
{
	pthread_t threads[THREADS];

	set(nr_done, 0);
	for (intptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						run_own_graphs,
						(void *)(i % 2)),
				 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(get(nr_done), THREADS * ROUNDS * 3ul * NODES);
}

static void several_threads_run_graphs(void **state)
{
	in_each_way(several_run_graphs);
}

/* The child of the first test comes first: a thread of libumt may outlive a runtime, and the
 * thread sanitizer keeps the parent's threads in its list after a fork.  Those behind the
 * second stay on one CPU, and so do runtimes that begin there. */
KTEST_MAIN(KTEST(a_thread_may_end_in_one), KTEST(several_threads_run_graphs),
	   KTEST(no_worker_is_needed), KTEST(children_of_nodes_are_reached),
	   KTEST(codes_reach_who_runs_the_graph),
	   KTEST(no_worker_is_woken_for_its_cpu),
	   KTEST(umt_sees_those_who_stay),
	   KTEST(no_worker_is_noted_behind_the_end),
	   KTEST(others_are_for_workers), KTEST(what_turns_long_is_left))
