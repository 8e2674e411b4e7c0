/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Nodes of a graph that their worker does faster than two could are left to it:
 * who took some of them in quick succession takes no more as long as that goes
 * on, there is nothing else to do, and no longer than for a while.  One that is
 * not so fast, or stands still, is stolen from as ever, several nodes at a time
 * where many wait.
 */
#include "support/runs.h"

#include <pthread.h>

#include "support/bare_runtime.h"

#define LONG_NS 20000000000
/* A verdict comes after so many. */
#define TAKEN SHORT_TASKS_JUDGED

/*
 * By these times whatever is taken was taken quickly, and who does anything
 * within a watch is fast, however slow the machine.  A rest ends for another
 * reason than its length.
 */
static const struct node_times long_times = {
	.taken_ns = LONG_NS,
	.fast_ns = LONG_NS,
	.fast_wide_ns = LONG_NS,
	.watch_ns = 20000000,
	.rest_ns = LONG_NS,
};

/* ---- the policy, in a runtime without threads ---- */

static struct worker *thief, *victim, *third;
static struct ktrt_task nodes[TAKEN];

static void lay_out(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	rt.nodes_judged = long_times;
	thief = worker_new(0);
	victim = worker_new(0);
	third = worker_new(0);
	assert_true(thief && victim && third);
	thief->core = victim->core = third->core = &rt.cores[0];
}

static void give_task(struct worker *w, struct ktrt_task *task, unsigned flags)
{
	memset(task, 0, sizeof(*task));
	task->flags = (uint16_t)flags;
	assert_true(deque_push(&w->deque, task));
	*mask_flag(rt.loaded, w->slot) = 1;
}

/* As many as it takes for a verdict; was it that they were taken quickly? */
static bool take_nodes(unsigned flags, uint64_t taken_ns)
{
	rt.nodes_judged.taken_ns = taken_ns;
	thief->fast = NULL;
	thief->nr_taken = 0;
	thief->judged = TAKEN;
	thief->judged_ns = now_ns();
	for (int i = 0; i < TAKEN; i++)
		give_task(victim, &nodes[i], flags);
	for (int i = 0; i < TAKEN; i++)
		assert_ptr_equal(sched_take(thief), &nodes[i]);
	if (thief->fast)
		assert_ptr_equal(thief->fast, victim);
	return thief->fast;
}

static void quick_ones_are_judged(void **state)
{
	lay_out();
	assert_true(take_nodes(TASK_NODE, LONG_NS));
	assert_false(take_nodes(TASK_NODE, 0));
	assert_false(take_nodes(0, LONG_NS));
	bare_runtime_end();
}

/* An eighth of what is left, as many as would be judged, and nodes alone. */
static void many_are_taken_together(void **state)
{
	static struct ktrt_task many[800];

	lay_out();
	for (int i = 0; i < 800; i++)
		give_task(victim, &many[i], TASK_NODE);
	for (unsigned judged = 2; judged <= 64; judged *= 2) {
		unsigned most = judged < 32 ? judged : 32;
		int64_t before = deque_size(&victim->deque);

		thief->fast = NULL;
		thief->judged = judged;
		thief->judged_ns = now_ns();
		thief->nr_taken = 0;
		assert_non_null(sched_take(thief));
		assert_int_equal(deque_size(&thief->deque), most);
		assert_int_equal(deque_size(&victim->deque), before - most - 1);
		assert_ptr_equal(thief->fast,
				 most + 1 >= judged ? victim : NULL);
		while (deque_pop(&thief->deque))
			;
	}
	for (int64_t left = deque_size(&victim->deque) - 1; left >= 0; left--) {
		int64_t eighth = left / 8 < 32 ? left / 8 : 32;

		thief->judged = 1024;
		thief->nr_taken = 0;
		assert_non_null(sched_take(thief));
		assert_int_equal(deque_size(&thief->deque), eighth);
		while (deque_pop(&thief->deque))
			;
		left -= eighth;
	}
	assert_int_equal(deque_size(&victim->deque), 0);
	for (int i = 0; i < 100; i++)
		give_task(victim, &many[i], 0);
	assert_ptr_equal(sched_take(thief), &many[0]);
	assert_int_equal(deque_size(&thief->deque), 0);
	bare_runtime_end();
}

/* It has no core that it could leave, and asks for none. */
static void attached_threads_judge_nothing(void **state)
{
	lay_out();
	thief->core = NULL;
	assert_false(take_nodes(TASK_NODE, LONG_NS));
	bare_runtime_end();
}

static void rest_thief(void)
{
	thief->fast = victim;
	thief->fast_ns = LONG_NS;
	thief->judged = TAKEN;
	short_tasks_rest(thief, NULL);
	assert_null(thief->fast);
}

static void one_that_stalls_is_stolen_from(void **state)
{
	lay_out();
	rt.nodes_judged.watch_ns = 1000;
	rest_thief();
	assert_int_equal(thief->judged, 2 * TAKEN);
	/* Less and less often it is asked, but always. */
	for (int i = 0; i < 20; i++) {
		thief->fast = victim;
		thief->fast_ns = LONG_NS;
		short_tasks_rest(thief, NULL);
	}
	assert_in_range(thief->judged, 2 * TAKEN, 1024);
	bare_runtime_end();
}

static bool moves;

static void *do_tasks(void *arg)
{
	while (get(moves))
		count_up(&victim->counts.tasks);
	return NULL;
}

static pthread_t begin_moving(void)
{
	pthread_t thread;

	set(moves, true);
	assert_int_equal(pthread_create(&thread, NULL, do_tasks, NULL), 0);
	return thread;
}

static void end_moving(pthread_t thread)
{
	set(moves, false);
	pthread_join(thread, NULL);
}

static void fast_ones_are_left_alone(void **state)
{
	uint64_t until = ktest_now_ns() + LONG_NS;
	struct ktrt_task task;
	pthread_t thread;

	lay_out();
	rt.nodes_judged.rest_ns = 1000000;
	thread = begin_moving();
	do
		rest_thief();
	while (thief->judged >= TAKEN && ktest_now_ns() < until);
	/* There was a rest, it ended although the other goes on, and now a few
	 * are tried. */
	assert_true(thief->judged < TAKEN);
	/* Not while others have something. */
	give_task(third, &task, TASK_NODE);
	rest_thief();
	assert_int_equal(thief->judged, 2 * TAKEN);
	assert_ptr_equal(deque_pop(&third->deque), &task);
	assert_true(node_queue_put(&rt.node_queues[0], &task));
	rest_thief();
	assert_int_equal(thief->judged, 2 * TAKEN);
	assert_ptr_equal(node_queue_take(&rt.node_queues[0]), &task);
	end_moving(thread);
	bare_runtime_end();
}

static void who_waits_goes_on_when_that_is_over(void **state)
{
	struct ktrt_task awaited;
	pthread_t thread;

	lay_out();
	memset(&awaited, 0, sizeof(awaited));
	thread = begin_moving();
	thief->fast = victim;
	thief->fast_ns = LONG_NS;
	thief->judged = TAKEN;
	short_tasks_rest(thief, &awaited);
	assert_int_equal(thief->judged, 2 * TAKEN);
	end_moving(thread);
	bare_runtime_end();
}

/* ---- in a graph ---- */

#define WIDTH 8
#define STEPS 5000

static unsigned long done;
static bool rested;

static int count_node(void *arg)
{
	/* Only a rest makes that so few. */
	if (self_worker->judged < TAKEN)
		set(rested, true);
	/* Plain: whoever does it, the steps of a column are ordered. */
	++*(unsigned long *)arg;
	return 0;
}

static unsigned long columns[WIDTH][8]; /* a cache line each */

static struct ktrt_graph *make_stencil(void)
{
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	for (int i = 0; i < WIDTH * STEPS; i++) {
		int at = i % WIDTH;

		assert_int_equal(
			ktrt_graph_add(graph, count_node, columns[at], NULL),
			i);
		for (int from = at - 1; from <= at + 1 && i >= WIDTH; from++)
			if (from >= 0 && from < WIDTH)
				ktrt_graph_edge(graph, i - at - WIDTH + from,
						i);
	}
	return graph;
}

static int run_graph(void *arg)
{
	return ktrt_graph_run(arg);
}

static uint64_t nr_steals(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&info), 0);
	return info.steals;
}

/* With so many workers, if there are cores for them; how many there are. */
static unsigned start_workers(unsigned workers)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_info info = KTRT_INFO_INIT;

	options.workers = workers;
	assert_int_equal(ktrt_start(&options), 0);
	assert_int_equal(ktrt_info_get(&info), 0);
	return info.workers;
}

static void check_columns(void)
{
	done++;
	for (int i = 0; i < WIDTH; i++)
		assert_int_equal(columns[i][0], done * STEPS);
}

/*
 * A worker that has taken some nodes leaves the others to the one that does them, and
 * takes a few again afterwards.  The machine may stop a worker at any time, so that
 * there is nothing to leave to it, or keep the other cores busy: it takes some runs.
 */
static void workers_of_a_graph_rest(void **state)
{
	uint64_t until = ktest_now_ns() + LONG_NS, most = 0;
	struct ktrt_graph *graph;

	memset(columns, 0, sizeof(columns));
	if (start_workers(2) < 2) {
		assert_int_equal(ktrt_stop(), 0);
		ktest_skip("one worker shares with nobody");
	}
	rt.nodes_judged = long_times;
	/* Less than a run takes: between runs the attached thread's task is wanted. */
	rt.nodes_judged.watch_ns = 100000;
	graph = make_stencil();
	while (!get(rested) && ktest_now_ns() < until) {
		uint64_t before = nr_steals(), steals;

		assert_int_equal(ktrt_run(run_graph, graph), 0);
		check_columns();
		steals = nr_steals() - before;
		most = steals > most ? steals : most;
	}
	ktrt_graph_free(graph);
	assert_int_equal(ktrt_stop(), 0);
	if (most <= TAKEN && !rested)
		ktest_skip("the other worker got no core for it");
	assert_true(rested);
}

KTEST_MAIN(KTEST(quick_ones_are_judged), KTEST(attached_threads_judge_nothing),
	   KTEST(many_are_taken_together),
	   KTEST(one_that_stalls_is_stolen_from),
	   KTEST(fast_ones_are_left_alone),
	   KTEST(who_waits_goes_on_when_that_is_over),
	   KTEST(workers_of_a_graph_rest))
