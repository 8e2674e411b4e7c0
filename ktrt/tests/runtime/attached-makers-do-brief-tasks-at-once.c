/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * If the queue of an attached thread holds plenty, it does brief tasks where it makes them, as
 * a worker does, and need not visit a core for that.  Such a task knows a core, wherever it is
 * moved, is not cancelled in its middle, and may do what any task may.  Others are queued.
 */
#include "support/blocked_worker.h"

/* More than are plenty, and fewer than caches hold. */
#define CHILDREN 1000
#define ATTEMPTS 100

static unsigned long nr_strange;

static int note_task(void *arg)
{
	int cancel_state;

	if (pthread_equal(pthread_self(), attached_thread)) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
		if (cancel_state != PTHREAD_CANCEL_DISABLE ||
		    ktrt_worker() < 0 || ktrt_detach() != -ESRCH)
			more(nr_strange);
	}
	count_done();
	return 0;
}

static ktrt_func dispatched = note_task;

/* How many did the thread itself, before it waited? */
static unsigned long make_children(ktrt_func func, void *arg)
{
	unsigned long here;

	set(nr_done, 0);
	set(nr_here, 0);
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(ktrt_spawn(func, arg), 0);
	here = get(nr_here);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(nr_done), CHILDREN);
	return here;
}

static void start_runtime(unsigned workers)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = workers;
	assert_int_equal(ktrt_start(&options), 0);
	attached_thread = pthread_self();
}

static void check_thread(void)
{
	int cancel_state;

	assert_int_equal(get(nr_strange), 0);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
	assert_int_equal(cancel_state, PTHREAD_CANCEL_ENABLE);
	assert_int_equal(ktrt_worker(), -1);
}

/* Workers may be so fast that it never has plenty. */
static void so_they_are_beside_workers(void **state)
{
	unsigned long here = 0;

	start_runtime(0);
	for (int i = 0; i < ATTEMPTS && !here; i++) {
		func_classify(note_task, true);
		func_note_tried(note_task);
		here = make_children(note_task, NULL);
	}
	printf("# of %d: %lu\n", CHILDREN, here);
	check_thread();
	assert_int_equal(ktrt_stop(), 0);
}

/* Nobody knows what a dispatched one does. */
static void others_are_queued(void **state)
{
	start_runtime(1);
	assert_int_equal(make_children(ktrt_dispatch, &dispatched), 0);
	assert_int_equal(ktrt_stop(), 0);
}

/* ---- whatever such a task does ---- */

#define CODE 77

static unsigned nr_inside, nr_children;
static int more_ends[2]; /* of a pipe */
static struct ktrt_task *event_holder;

static int count_child(void *arg)
{
	more(nr_children);
	return 0;
}

/* The only worker is blocked, so what the thread makes is queued until there is plenty. */
static void fill_queue(void)
{
	start_with_one(KTRT_NO_UMT);
	assert_int_equal(pipe(more_ends), 0);
	assert_int_equal(ktrt_spawn(block_until_written, NULL), 0);
	assert_true(holds_soon(!sched_work_visible()));
	set(nr_inside, 0);
	set(nr_children, 0);
	for (int i = 0; i <= QUEUE_PLENTY_ALONE; i++)
		assert_int_equal(ktrt_spawn(count_child, NULL), 0);
}

static void free_worker(void)
{
	ktest_check(write(pipe_ends[1], "x", 1) == 1);
}

/* @code: what it fails with, of itself or of a child */
static void empty_queue(int code)
{
	assert_int_equal(ktrt_wait(), code);
	assert_int_equal(ktrt_worker(), -1);
	close(more_ends[0]);
	close(more_ends[1]);
	stop_with_one();
}

/* A function that takes long once, as where its thread loses its CPU, is brief no more. */
static void brief_ones_are_done_at_once(void **state)
{
	unsigned long here;

	fill_queue();
	set(nr_done, 0);
	set(nr_here, 0);
	func_classify(note_task, true);
	func_note_tried(note_task);
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(ktrt_spawn(note_task, NULL), 0);
	here = get(nr_here);
	free_worker();
	empty_queue(0);
	assert_true(here > 0);
	assert_int_equal(get(nr_done), CHILDREN);
	check_thread();
}

/* The function is called inside the call. */
static void call_at_once(const ktrt_func *func)
{
	func_classify(call_briefly, true);
	func_note_tried(call_briefly);
	assert_int_equal(ktrt_spawn(call_briefly, (void *)func), 0);
	assert_int_equal(get(nr_inside), 1);
	assert_int_equal(ktrt_worker(), -1);
}

static void begin_inside(void)
{
	ktest_check(pthread_equal(pthread_self(), attached_thread));
	ktest_check(ktrt_worker() == 0);
	more(nr_inside);
}

/* To a CPU that is not the runtime's, if there is one. */
static void move_away(void)
{
	cpu_set_t cpus;
	int own, cpu = 0;

	ktest_check(ktrt_cpus(&own, 1) == 1);
	do {
		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
	} while ((cpu == own || sched_setaffinity(0, sizeof(cpus), &cpus)) &&
		 ++cpu < CPU_SETSIZE);
}

static int spawn_elsewhere(void *arg)
{
	begin_inside();
	move_away();
	for (int i = 0; i < 3; i++)
		ktest_check(!ktrt_spawn(call_briefly, NULL));
	ktest_check(ktrt_worker() == 0);
	stay_on_a_core();
	return 0;
}

static const ktrt_func elsewhere = spawn_elsewhere;

static void tasks_know_a_core_wherever_they_are(void **state)
{
	fill_queue();
	call_at_once(&elsewhere);
	free_worker();
	empty_queue(0);
}

static int wait_inside(void *arg)
{
	uint64_t waited = self_worker->waited;

	begin_inside();
	ktest_check(!ktrt_spawn(count_child, NULL));
	free_worker();
	ktest_check(!ktrt_wait());
	/* What the thread knows of its own waits is as it was. */
	ktest_check(self_worker->waited == waited);
	ktest_check(ktrt_worker() == 0);
	return 0;
}

static const ktrt_func waits = wait_inside;

static int leave_children(void *arg)
{
	begin_inside();
	ktest_check(!ktrt_spawn(count_child, NULL));
	return ktrt_spawn(count_child, NULL);
}

static const ktrt_func leaves = leave_children;

static int hold_event(void *arg)
{
	begin_inside();
	event_holder = ktrt_self();
	return ktrt_events_add(1);
}

static const ktrt_func with_event = hold_event;

static void what_they_leave_is_awaited(void **state)
{
	fill_queue();
	call_at_once(&waits);
	empty_queue(0);
	assert_int_equal(get(nr_children), QUEUE_PLENTY_ALONE + 2);
	fill_queue();
	call_at_once(&leaves);
	free_worker();
	empty_queue(0);
	assert_int_equal(get(nr_children), QUEUE_PLENTY_ALONE + 3);
	fill_queue();
	call_at_once(&with_event);
	free_worker();
	ktrt_events_done(event_holder, 1);
	empty_queue(0);
}

static int fail_inside(void *arg)
{
	begin_inside();
	return CODE;
}

static const ktrt_func fails = fail_inside;

static void their_codes_are_told(void **state)
{
	fill_queue();
	call_at_once(&fails);
	free_worker();
	empty_queue(CODE);
}

static int write_byte(void *arg)
{
	return write(more_ends[1], "x", 1) == 1 ? 0 : -EIO;
}

/* It waits for what the worker does, and the runtime does not know. */
static int block_inside(void *arg)
{
	char byte;

	begin_inside();
	free_worker();
	ktest_check(read(more_ends[0], &byte, 1) == 1);
	return 0;
}

static const ktrt_func blocks = block_inside;

static void they_may_block(void **state)
{
	fill_queue();
	assert_int_equal(ktrt_spawn(write_byte, NULL), 0);
	call_at_once(&blocks);
	empty_queue(0);
}

static int add_indices(size_t first, size_t end, void *sum)
{
	for (; first < end; first++)
		__atomic_fetch_add((size_t *)sum, first, __ATOMIC_SEQ_CST);
	return 0;
}

static int call_all(void *arg)
{
	const struct ktrt_dep in = { &nr_inside, 0, KTRT_IN };
	const struct ktrt_dep out = { &nr_inside, 0, KTRT_OUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	size_t sum = 0;

	begin_inside();
	free_worker();
	ktest_check(!ktrt_run(count_child, NULL));
	ktest_check(!ktrt_for(0, 1000, 10, add_indices, &sum));
	ktest_check(sum == 499500);
	ktest_check(!ktrt_group_new(&attr.group));
	attr.deps = &out;
	attr.nr_deps = 1;
	ktest_check(!ktrt_spawn_attr(count_child, NULL, &attr));
	ktest_check(!ktrt_wait_for(&in, 1));
	ktest_check(!ktrt_group_wait(attr.group));
	ktrt_group_free(attr.group);
	attr.group = NULL;
	attr.flags = KTRT_UNDEFERRED;
	ktest_check(!ktrt_spawn_attr(count_child, NULL, &attr));
	ktest_check(!ktrt_yield());
	ktest_check(ktrt_stop() == -EBUSY);
	ktest_check(ktrt_worker() == 0);
	return 0;
}

static const ktrt_func calls = call_all;

static void they_may_call_what_any_task_may(void **state)
{
	fill_queue();
	call_at_once(&calls);
	empty_queue(0);
	assert_int_equal(get(nr_children), QUEUE_PLENTY_ALONE + 4);
}

static void those_with_attributes_are_queued(void **state)
{
	const struct ktrt_dep dep = { &nr_children, 0, KTRT_IN };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	const ktrt_func count = count_child;

	fill_queue();
	func_classify(call_briefly, true);
	func_note_tried(call_briefly);
	attr.priority = 1;
	assert_int_equal(ktrt_spawn_attr(call_briefly, (void *)&count, &attr),
			 0);
	attr.priority = 0;
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(call_briefly, (void *)&count, &attr),
			 0);
	attr.nr_deps = 0;
	assert_int_equal(ktrt_group_new(&attr.group), 0);
	assert_int_equal(ktrt_spawn_attr(call_briefly, (void *)&count, &attr),
			 0);
	assert_int_equal(get(nr_children), 0);
	free_worker();
	assert_int_equal(ktrt_group_wait(attr.group), 0);
	ktrt_group_free(attr.group);
	empty_queue(0);
	assert_int_equal(get(nr_children), QUEUE_PLENTY_ALONE + 4);
}

/* ---- if it ends the thread ---- */

static int end_thread(void *arg)
{
	begin_inside();
	pthread_exit(NULL);
}

static const ktrt_func ends = end_thread;

static void *attach_and_end(void *arg)
{
	attached_thread = pthread_self();
	ktest_check(!ktrt_attach());
	stay_on_a_core();
	for (int i = 0; i <= QUEUE_PLENTY_ALONE; i++)
		ktest_check(!ktrt_spawn(count_child, NULL));
	func_classify(call_briefly, true);
	func_note_tried(call_briefly);
	ktrt_spawn(call_briefly, (void *)&ends);
	return arg;
}

static void *write_later(void *arg)
{
	ktest_check(holds_soon(get(nr_inside)));
	free_worker();
	return NULL;
}

/* What it made is done before it is gone. */
static int lose_a_thread(void *arg)
{
	pthread_t thread, writer;
	void *result = NULL;

	fill_queue();
	ktest_check(!pthread_create(&writer, NULL, write_later, NULL));
	ktest_check(!pthread_create(&thread, NULL, attach_and_end, &result));
	ktest_check(!pthread_join(thread, &result));
	ktest_check(!result);
	ktest_check(!pthread_join(writer, NULL));
	ktest_check(!ktrt_wait());
	ktest_check(get(nr_inside) == 1);
	ktest_check(get(nr_children) == 2 * (QUEUE_PLENTY_ALONE + 1));
	ktest_check(!ktrt_stop());
	_exit(0);
}

static void one_may_end_the_thread(void **state)
{
	assert_int_equal(ktest_in_child(lose_a_thread, NULL), 0);
}

KTEST_MAIN(KTEST(one_may_end_the_thread), KTEST(brief_ones_are_done_at_once),
	   KTEST(so_they_are_beside_workers), KTEST(others_are_queued),
	   KTEST(tasks_know_a_core_wherever_they_are),
	   KTEST(what_they_leave_is_awaited), KTEST(their_codes_are_told),
	   KTEST(they_may_block), KTEST(they_may_call_what_any_task_may),
	   KTEST(those_with_attributes_are_queued))
