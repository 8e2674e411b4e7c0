/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Wherever memory or a thread is refused, once or from there on, a call does what it
 * says or returns -ENOMEM (-EAGAIN for a thread) and has no effect: tasks that
 * were made are done once, others never, nothing hangs.  That nothing leaks is
 * said by the sanitizers.
 */
#include "support/runs.h"

#include <pthread.h>
#include <stdlib.h>

#include "failalloc.h"

#define ADDRESSES 100
#define WIDE 700
#define MOVED 100

static unsigned long made, done;
static unsigned wrong;

static void check_call(bool right, const char *what, int line)
{
	if (right)
		return;
	fprintf(stderr, "# line %d: %s\n", line, what);
	more(wrong);
}

#define CHECK(condition) check_call(condition, #condition, __LINE__)

static int count_done(void *arg)
{
	more(done);
	return 0;
}

static void note_spawn(int error, int line)
{
	if (!error)
		more(made);
	else
		check_call(error == -ENOMEM,
			   "a task is made or there is no memory", line);
}

#define SPAWNED(call) note_spawn(call, __LINE__)

/* ---- each call that may need memory ---- */

static char data[ADDRESSES];

static void spawn_plainly(void)
{
	char large[200] = { 0 };
	void *buffer;

	SPAWNED(ktrt_spawn(count_done, NULL));
	SPAWNED(ktrt_spawn_copy(count_done, large, sizeof(large)));
	buffer = ktrt_spawn_begin(count_done, 8, 0);
	if (buffer) {
		more(made);
		ktrt_spawn_end(count_done, buffer);
	}
	for (int i = 0; i < WIDE; i++)
		SPAWNED(ktrt_spawn(count_done, NULL));
}

static void spawn_with(const struct ktrt_dep *deps, size_t nr, int priority,
		       unsigned flags)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.priority = priority;
	attr.flags = flags;
	SPAWNED(ktrt_spawn_attr(count_done, NULL, &attr));
}

static void spawn_with_data(void)
{
	static const unsigned modes[] = { KTRT_IN, KTRT_OUT, KTRT_INOUT,
					  KTRT_COMMUTATIVE };
	struct ktrt_dep deps[ADDRESSES];
	int error;

	for (unsigned i = 0; i < ADDRESSES; i++) {
		deps[i] = (struct ktrt_dep){ &data[i], 0, modes[i % 4] };
		spawn_with(&deps[i], 1, 0, i % 8 ? 0 : KTRT_UNDEFERRED);
		spawn_with(deps, i % 10, (int)i, 0);
	}
	for (unsigned i = 0; i < ADDRESSES; i += 7) {
		deps[i].len = ADDRESSES - i;
		spawn_with(&deps[i], 1, 0, 0);
		spawn_with(&deps[0], 1, 0, 0);
	}
	error = ktrt_wait_for(&deps[3], 1);
	CHECK(!error || error == -ENOMEM);
}

/* Below it, and after what it names. */
static int use_data_below(void *arg)
{
	struct ktrt_dep dep = { data, 0, KTRT_INOUT };
	int error;

	for (int i = 0; i < 3; i++)
		spawn_with(&dep, 1, 0, 0);
	error = ktrt_release(&dep, 1);
	CHECK(!error || error == -ENOMEM);
	dep.addr = &data[7];
	dep.len = 5;
	spawn_with(&dep, 1, 0, 0);
	return count_done(NULL);
}

static void spawn_weakly(void)
{
	struct ktrt_dep deps[] = {
		{ data, 0, KTRT_WEAK_INOUT },
		{ &data[6], 8, KTRT_WEAK_OUT },
		{ &data[20], 40, KTRT_INOUT },
		{ &data[30], 4, KTRT_WEAK_IN },
	};
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.flags = KTRT_EARLY_RELEASE;
	for (unsigned i = 0; i < 8; i++) {
		attr.nr_deps = i % 2 ? 4 : 2;
		SPAWNED(ktrt_spawn_attr(use_data_below, NULL, &attr));
		spawn_with(&deps[i % 4], 1, 0, 0);
	}
}

static void move_object(void *to, void *from)
{
	*(void **)to = *(void **)from;
	*(void **)from = NULL;
}

static int drop_object(void *arg)
{
	CHECK(*(void **)arg != NULL);
	free(*(void **)arg);
	return count_done(NULL);
}

/* It is the task's, or still the caller's. */
static void spawn_with_object(size_t bytes)
{
	struct ktrt_dep dep = { data, 0, KTRT_INOUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	void *object[MOVED] = { strdup("object") };
	int error;

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.arg_bytes = bytes;
	attr.move = move_object;
	error = ktrt_spawn_attr(drop_object, object, &attr);
	SPAWNED(error);
	CHECK(!error == !object[0]);
	free(object[0]);
}

static void add_copy(void *to, void *copy, void *arg)
{
	*(long *)to += *(long *)copy;
}

static int add_one(void *reduction)
{
	long *copy = ktrt_reduction_copy(reduction);

	if (copy)
		++*copy;
	return copy ? count_done(NULL) : -ENOMEM;
}

/* As many as had a copy. */
static void spawn_reduction(void)
{
	static long sum;
	static struct ktrt_reduction reduction = KTRT_REDUCTION_INIT;
	struct ktrt_dep dep = { &reduction, 0, KTRT_REDUCTION };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	unsigned long before;
	int nr = 0, error;

	ktrt_wait();
	before = get(done);
	reduction.data = &sum;
	reduction.bytes = sizeof(sum);
	reduction.combine = add_copy;
	sum = 0;
	attr.deps = &dep;
	attr.nr_deps = 1;
	for (int i = 0; i < 8; i++) {
		error = ktrt_spawn_attr(add_one, &reduction, &attr);
		CHECK(!error || error == -ENOMEM);
		nr += !error;
	}
	error = ktrt_wait();
	CHECK(!error || error == -ENOMEM);
	CHECK(sum == (long)(get(done) - before));
	CHECK(error || sum == nr);
	__atomic_fetch_add(&made, (unsigned long)sum, __ATOMIC_SEQ_CST);
}

static void use_group(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error = ktrt_group_new(&attr.group);

	CHECK(!error || error == -ENOMEM);
	if (error)
		return;
	for (int i = 0; i < 3; i++)
		SPAWNED(ktrt_spawn_attr(count_done, NULL, &attr));
	CHECK(ktrt_group_wait(attr.group) == 0);
	ktrt_group_free(attr.group);
}

static unsigned long nodes_done;

static int count_node(void *arg)
{
	more(nodes_done);
	return count_done(NULL);
}

/* If a node or an edge is missing it is not run.  A node for which a worker finds no memory
 * fails, and those that come after it are skipped. */
static void use_graph(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { data, 0, KTRT_INOUT };
	struct ktrt_graph *graph;
	int error = ktrt_graph_new(&graph), number;

	CHECK(!error || error == -ENOMEM);
	attr.deps = &dep;
	attr.nr_deps = 1;
	for (int i = 0; !error && i < ADDRESSES; i++) {
		dep.addr = &data[i % 70];
		number = ktrt_graph_add(graph, count_node, NULL, &attr);
		CHECK(number == i || number == -ENOMEM);
		error = number < 0 ? number : 0;
	}
	set(nodes_done, 0);
	if (!error) {
		error = ktrt_graph_run(graph);
		CHECK(error ? error == -ENOMEM && nodes_done < ADDRESSES
			    : nodes_done == ADDRESSES);
	}
	__atomic_fetch_add(&made, nodes_done, __ATOMIC_SEQ_CST);
	ktrt_graph_free(graph);
}

static int add_range(size_t first, size_t end, void *arg)
{
	__atomic_fetch_add((size_t *)arg, end - first, __ATOMIC_SEQ_CST);
	return 0;
}

static int reduce_range(size_t first, size_t end, void *value, void *arg)
{
	*(size_t *)value += end - first;
	return 0;
}

static int combine_values(void *into, void *from, void *arg)
{
	*(size_t *)into += *(size_t *)from;
	return 0;
}

static void use_loops(void)
{
	size_t all = 0;
	int error = ktrt_for(0, 5000, 10, add_range, &all);

	CHECK((!error && all == 5000) || error == -ENOMEM);
	all = 0;
	error = ktrt_reduce(0, 5000, 10, reduce_range, combine_values, &all,
			    sizeof(all), NULL);
	CHECK((!error && all == 5000) || error == -ENOMEM);
}

static void drop_nothing(void *object)
{
}

static int use_all(void *arg)
{
	int code;

	spawn_plainly();
	spawn_with_data();
	spawn_weakly();
	spawn_with_object(8);
	spawn_with_object(MOVED * sizeof(void *));
	spawn_reduction();
	use_group();
	use_graph();
	use_loops();
	code = ktrt_code_new("nothing", NULL, drop_nothing);
	CHECK(code == -ENOMEM || (unsigned)code >= KTRT_CODE_FIRST);
	if (code != -ENOMEM)
		ktrt_code_drop(code);
	return 0;
}

/* ---- refusing ---- */

static void *attach_and_run(void *unused)
{
	int error = ktrt_run(count_done, NULL);

	if (error == -EAGAIN)
		error = -ENOMEM;
	SPAWNED(error);
	return NULL;
}

static void run_from_another(void)
{
	pthread_t thread;

	/* Of the test's own, it may be refused as well. */
	if (!pthread_create(&thread, NULL, attach_and_run, NULL))
		pthread_join(thread, NULL);
}

static void start_runtime(unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 2;
	options.flags = flags;
	assert_int_equal(ktrt_start(&options), 0);
}

static void check_counts(unsigned nth, int line)
{
	check_call(get(done) == get(made), "as many are done as were made",
		   line);
	if (get(done) != get(made))
		fprintf(stderr, "# %lu done of %lu, refused: call %u\n", done,
			made, nth);
}

typedef void (*arm_func)(unsigned nth, unsigned kinds);

/* Return: whether something was refused. */
static bool use_refused(arm_func arm, unsigned nth, unsigned flags)
{
	unsigned refused;
	int error;

	start_runtime(flags);
	set(made, 0);
	set(done, 0);
	arm(nth, FAILALLOC_ALL);
	error = ktrt_run(use_all, NULL);
	CHECK(!error || error == -ENOMEM);
	use_all(NULL);
	run_from_another();
	error = ktrt_wait();
	CHECK(!error || error == -ENOMEM);
	refused = failalloc_disarm();
	check_counts(nth, __LINE__);
	/* And all of it goes on as before. */
	CHECK(ktrt_run(use_all, NULL) == 0);
	check_counts(nth, __LINE__);
	CHECK(ktrt_stop() == 0);
	assert_int_equal(wrong, 0);
	return refused;
}

static void calls_say_so(void **state)
{
	/* Sanitizers take long. */
	unsigned nth = 1, step = KTEST_TSAN || KTEST_ASAN ? 3 : 1;

	while (use_refused(failalloc_arm_for, nth, KTRT_NO_UMT))
		nth += step;
	printf("# %u calls ask for memory or a thread\n", nth - 1);
	assert_true(nth > 20);
	for (unsigned from = 1; from < nth; from += 1 + from / 16)
		use_refused(failalloc_arm_from, from, KTRT_NO_UMT);
}

static bool start_refused(arm_func arm, unsigned nth, unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	unsigned refused;
	int error;

	options.workers = 2;
	options.flags = flags;
	arm(nth, FAILALLOC_ALL);
	error = ktrt_start(&options);
	refused = failalloc_disarm();
	CHECK(!error || (refused && (error == -ENOMEM || error == -EAGAIN)));
	if (error) {
		CHECK(ktrt_run(count_done, NULL) == -ESRCH);
	} else {
		CHECK(ktrt_run(count_done, NULL) == 0);
		CHECK(ktrt_stop() == 0);
	}
	assert_int_equal(wrong, 0);
	return refused;
}

static void starting_may_be_refused(void **state)
{
	static const unsigned flags[] = { KTRT_NO_UMT, 0, KTRT_FOLLOW,
					  KTRT_UNBOUND };

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(flags); i++) {
		unsigned nth = 0;

		while (start_refused(failalloc_arm_for, ++nth, flags[i]))
			;
		assert_true(nth > 5);
		for (unsigned from = 1; from < nth; from++)
			start_refused(failalloc_arm_from, from, flags[i]);
	}
}

KTEST_MAIN(KTEST(starting_may_be_refused), KTEST(calls_say_so))
