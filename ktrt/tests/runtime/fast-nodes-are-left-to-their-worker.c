/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Nodes of a graph that their worker does faster than two could are left to it:
 * who took some of them in quick succession takes no more as long as that goes
 * on, there is nothing else to do, and no longer than for a while.  One that is
 * not so fast, or stands still, is stolen from as ever.
 */
#include "support/runs.h"

#include <pthread.h>

#include "runtime/rt.h"

#define LONG_NS 20000000000
/* A verdict comes after so many, if each took no longer. */
#define TAKEN SHORT_TASKS_JUDGED
#define TAKEN_NS SHORT_TASKS_TAKEN_NS

/* ---- the policy, in a runtime without threads ---- */

static struct worker *thief, *victim, *third;
static struct ktrt_task nodes[TAKEN];

static void lay_out(void)
{
	cpu_set_t cpus;

	memset(&rt, 0, sizeof(rt));
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_int_equal(cores_lay_out(&cpus, CPU_SETSIZE, 1), 0);
	rt.options.max_threads = 4;
	rt.options.flags = KTRT_UNBOUND;
	rt.leader_fd = -1;
	pthread_mutex_init(&rt.pool_lock, NULL);
	pool_init(&rt.tasks, sizeof(struct ktrt_task));
	assert_int_equal(rt_make_slots(), 0);
	thief = worker_new(0);
	victim = worker_new(0);
	third = worker_new(0);
	assert_true(thief && victim && third);
	thief->core = victim->core = third->core = &rt.cores[0];
}

static void take_down(void)
{
	park_forget();
	worker_free_all();
	pool_destroy(&rt.tasks);
	pthread_mutex_destroy(&rt.pool_lock);
	free(rt.workers);
	free(rt.loaded);
	cores_free();
	memset(&rt, 0, sizeof(rt));
}

static void give(struct worker *w, struct ktrt_task *task, unsigned flags)
{
	memset(task, 0, sizeof(*task));
	task->flags = (uint16_t)flags;
	assert_true(deque_push(&w->deque, task));
	*mask_flag(rt.loaded, w->slot) = 1;
}

/* As many as it takes for a verdict; how long at most the runtime saw. */
static uint64_t take_nodes(unsigned flags, long pause_us)
{
	uint64_t begin = ktest_now_ns();

	thief->fast = NULL;
	thief->nr_taken = 0;
	thief->judged = TAKEN;
	thief->judged_ns = now_ns();
	for (int i = 0; i < TAKEN; i++)
		give(victim, &nodes[i], flags);
	if (pause_us)
		nap_us(pause_us);
	for (int i = 0; i < TAKEN; i++)
		assert_ptr_equal(sched_take(thief), &nodes[i]);
	return ktest_now_ns() - begin;
}

static void quick_ones_are_looked_at(void **state)
{
	uint64_t until = ktest_now_ns() + LONG_NS;
	bool seen = false;

	lay_out();
	while (!seen && ktest_now_ns() < until) {
		seen = take_nodes(TASK_NODE, 0) < TAKEN * TAKEN_NS;
		if (seen)
			assert_ptr_equal(thief->fast, victim);
	}
	take_nodes(TASK_NODE, TAKEN * TAKEN_NS / 1000 + 1);
	assert_null(thief->fast);
	take_nodes(0, 0);
	assert_null(thief->fast);
	take_down();
	if (!seen)
		ktest_skip("this machine takes nothing in quick succession");
}

static void rest(void)
{
	thief->fast = victim;
	thief->judged = TAKEN;
	short_tasks_rest(thief, NULL);
	assert_null(thief->fast);
}

static void one_that_stands_still_is_stolen_from(void **state)
{
	lay_out();
	rest();
	assert_int_equal(thief->judged, 2 * TAKEN);
	/* Less and less often it is asked, but always. */
	for (int i = 0; i < 20; i++) {
		thief->fast = victim;
		short_tasks_rest(thief, NULL);
	}
	assert_in_range(thief->judged, 2 * TAKEN, 1024);
	take_down();
}

static bool moves;

/* So many at once that it counts as fast however seldom it gets a CPU. */
static void *do_tasks(void *arg)
{
	while (get(moves))
		at_poke(&victim->counts.tasks,
			at_peek(&victim->counts.tasks) + 100000000);
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
	thread = begin_moving();
	do
		rest();
	while (thief->judged >= TAKEN && ktest_now_ns() < until);
	/* There was a rest, it ended although the other goes on, and now a few
	 * are tried. */
	assert_true(thief->judged < TAKEN);
	/* Not while others have something. */
	give(third, &task, TASK_NODE);
	rest();
	assert_int_equal(thief->judged, 2 * TAKEN);
	assert_ptr_equal(deque_pop(&third->deque), &task);
	assert_true(node_queue_put(&rt.node_queues[0], &task));
	rest();
	assert_int_equal(thief->judged, 2 * TAKEN);
	assert_ptr_equal(node_queue_take(&rt.node_queues[0]), &task);
	end_moving(thread);
	take_down();
}

static void who_waits_goes_on_when_that_is_over(void **state)
{
	struct ktrt_task awaited;
	pthread_t thread;

	lay_out();
	memset(&awaited, 0, sizeof(awaited));
	thread = begin_moving();
	thief->fast = victim;
	thief->judged = TAKEN;
	short_tasks_rest(thief, &awaited);
	assert_int_equal(thief->judged, 2 * TAKEN);
	end_moving(thread);
	take_down();
}

/* ---- in a graph ---- */

#define WIDTH 8
#define STEPS 5000
/* Of so many nodes fewer than one is taken. */
#define SHARE 16

static unsigned long done;

static int count_node(void *arg)
{
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

/* In so many workers; with one: how many there are. */
static unsigned start(unsigned workers)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_info info = KTRT_INFO_INIT;

	options.workers = workers;
	assert_int_equal(ktrt_start(&options), 0);
	assert_int_equal(ktrt_info_get(&info), 0);
	return info.workers;
}

/* What one worker needs for a node, at the least. */
static uint64_t node_ns(void)
{
	struct ktrt_graph *graph;
	uint64_t least = UINT64_MAX;

	start(1);
	graph = make_stencil();
	for (int i = 0; i < 5; i++) {
		uint64_t begin = ktest_now_ns(), took;

		assert_int_equal(ktrt_run(run_graph, graph), 0);
		took = (ktest_now_ns() - begin) / (WIDTH * STEPS);
		least = took < least ? took : least;
	}
	ktrt_graph_free(graph);
	assert_int_equal(ktrt_stop(), 0);
	return least;
}

static void check_columns(void)
{
	done++;
	for (int i = 0; i < WIDTH; i++)
		assert_int_equal(columns[i][0], done * STEPS);
}

/*
 * There is a run in which the others took some nodes, and few.  Whatever else the
 * machine does may slow a worker down, so that its nodes are shared as they
 * should be then; or take the other cores away.
 */
static void a_graph_stays_where_it_is(void **state)
{
	uint64_t until = ktest_now_ns() + LONG_NS, least = UINT64_MAX;
	struct ktrt_graph *graph;

	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("sanitizers give every node some work");
	if (node_ns() > 75)
		ktest_skip("nodes are not fast on this machine");
	memset(columns, 0, sizeof(columns));
	if (start(2) < 2) {
		assert_int_equal(ktrt_stop(), 0);
		ktest_skip("one worker shares with nobody");
	}
	graph = make_stencil();
	while (least >= WIDTH * STEPS / SHARE && ktest_now_ns() < until) {
		uint64_t before = nr_steals(), steals;

		assert_int_equal(ktrt_run(run_graph, graph), 0);
		check_columns();
		steals = nr_steals() - before;
		if (steals >= TAKEN && steals < least)
			least = steals;
	}
	ktrt_graph_free(graph);
	assert_int_equal(ktrt_stop(), 0);
	if (least == UINT64_MAX)
		ktest_skip("the other worker got no core for it");
	printf("# %lu of %d nodes were taken\n", (unsigned long)least,
	       WIDTH * STEPS);
	assert_true(least < WIDTH * STEPS / SHARE);
}

KTEST_MAIN(KTEST(quick_ones_are_looked_at),
	   KTEST(one_that_stands_still_is_stolen_from),
	   KTEST(fast_ones_are_left_alone),
	   KTEST(who_waits_goes_on_when_that_is_over),
	   KTEST(a_graph_stays_where_it_is))
