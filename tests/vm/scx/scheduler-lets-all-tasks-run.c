/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Under scx_ktask all tasks go on, where they may run and nowhere else, also while CPUs
 * come and go; low ones are preempted and still go on (counted).  Four CPUs, two to a
 * cache.
 *
 * No verdict depends on time: threads are waited for, what the scheduler did is counted.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "busy_threads.h"
#include "ktest.h"
#include "scheduler_process.h"

#define NR_CPUS 4
#define ALL_CPUS 0xf
#define FIRST_CACHE 0x3
#define SECOND_CACHE 0xc
#define THREADS 8
#define THREADS_MAX 12 /* of one test */
#define SOME 20 /* counts, enough to show that a thread goes on */
#define MANY 20000 /* counts, a second or more */
#define CHANGES 40
#define WAKES 50
#define PLUGS 2
#define FORKS 200
#define FORKS_AT_ONCE 25

/* Turns of low tasks on one CPU are no nearer, unless more than 60 wait. */
#define TURN_NS 256000000

static pid_t scheduler;
static uint64_t started_ns;

/* A test that fails leaves its threads running: stop_threads() is for these too. */
static struct busy_thread started[THREADS_MAX];
static unsigned nr_started;

static struct busy_thread *start_threads(unsigned nr, uint64_t cpus,
					 bool is_low)
{
	struct busy_thread *threads = &started[nr_started];

	assert_true(nr_started + nr <= THREADS_MAX);
	for (unsigned i = 0; i < nr; i++) {
		threads[i] = (struct busy_thread){ .is_low = is_low };
		busy_start(&threads[i], cpus);
		nr_started++;
	}
	return threads;
}

static int stop_threads(void **state)
{
	while (nr_started)
		busy_stop(&started[--nr_started]);
	return 0;
}

static void stop_all(struct busy_thread *threads, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		busy_stop(&threads[i]);
}

static void await_all(struct busy_thread *threads, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		busy_await(&threads[i], SOME, 0);
}

static uint64_t sum_counts(const struct busy_thread *threads, unsigned nr)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < nr; i++)
		sum += busy_count(&threads[i]);
	return sum;
}

static void all_cpus_are_used(void **state)
{
	struct busy_thread *threads = start_threads(THREADS, ALL_CPUS, false);
	uint64_t cpus = 0;

	do {
		await_all(threads, THREADS);
		for (unsigned i = 0; i < THREADS; i++)
			cpus |= threads[i].cpus;
	} while (cpus != ALL_CPUS);
	assert_true(scheduler_runs());
}

/* Bound ones, others, and both on one CPU: none waits for ever. */
static void bound_tasks_and_others_share_a_cpu(void **state)
{
	struct busy_thread *bound = start_threads(2, 1, false);
	struct busy_thread *others = start_threads(NR_CPUS, ALL_CPUS, false);

	await_all(bound, 2);
	await_all(others, NR_CPUS);
	/* Nowhere else to run for any of them. */
	for (unsigned i = 0; i < NR_CPUS; i++)
		assert_true(busy_bind(&others[i], 1));
	await_all(bound, 2);
	await_all(others, NR_CPUS);
	stop_all(bound, 2);
	assert_int_equal(bound[0].cpus | bound[1].cpus, 1);
}

static void affinity_is_kept(void **state)
{
	struct busy_thread *threads = start_threads(THREADS, ALL_CPUS, false);
	uint64_t seed = ktest_seed();

	for (unsigned i = 0; i < CHANGES; i++) {
		struct busy_thread *busy = &threads[i % THREADS];
		uint64_t cpus = 1 + ktest_random_below(&seed, ALL_CPUS);

		assert_true(busy_bind(busy, cpus));
		/* What it counts now it may have begun before. */
		busy_await(busy, 2, 0);
		__atomic_store_n(&busy->cpus, 0, __ATOMIC_RELAXED);
		busy_await(busy, 3, 0);
		assert_int_equal(busy->cpus & ~cpus, 0);
	}
}

/* Also by tasks that waited in a queue of the first cache. */
static void idle_cpus_of_another_cache_are_used(void **state)
{
	struct busy_thread *second = start_threads(2, SECOND_CACHE, false);
	struct busy_thread *waiting = start_threads(NR_CPUS, ALL_CPUS, false);
	uint64_t cpus = 0;

	start_threads(2, FIRST_CACHE, false);
	await_all(waiting, NR_CPUS);
	stop_all(second, 2);
	for (unsigned i = 0; i < NR_CPUS; i++)
		__atomic_store_n(&waiting[i].cpus, 0, __ATOMIC_RELAXED);
	while ((cpus & SECOND_CACHE) != SECOND_CACHE) {
		await_all(waiting, NR_CPUS);
		for (unsigned i = 0; i < NR_CPUS; i++)
			cpus |= waiting[i].cpus;
	}
}

/*
 * As many low ones as others, which are to have almost all: 1.5 % is for low ones.  Where
 * the host gives a CPU its ticks late a turn is long, so that the share is only said; how
 * often there was a turn is checked at the end.  How long it is counted depends on the
 * others alone: were it until each low one has had a turn, there would be a turn in any
 * short time.
 */
static void low_tasks_and_others_continue(void **state)
{
	struct busy_thread *low = start_threads(NR_CPUS, ALL_CPUS, true);
	struct busy_thread *others;
	uint64_t low_before, others_before, nr_low, nr_others;

	await_all(low, NR_CPUS);
	others = start_threads(NR_CPUS, ALL_CPUS, false);
	await_all(others, NR_CPUS);
	low_before = sum_counts(low, NR_CPUS);
	others_before = sum_counts(others, NR_CPUS);
	for (unsigned i = 0; i < NR_CPUS; i++)
		busy_await(&others[i], MANY, 0);
	nr_low = sum_counts(low, NR_CPUS) - low_before;
	nr_others = sum_counts(others, NR_CPUS) - others_before;
	print_message("# low ones counted %lu of %lu\n", nr_low,
		      nr_low + nr_others);
	for (unsigned i = 0; i < NR_CPUS; i++)
		busy_await(&low[i], 1, 0);
	stop_all(low, NR_CPUS);
	for (unsigned i = 0; i < NR_CPUS; i++)
		assert_int_equal(low[i].low_error, 0);
}

static void bind_caller(uint64_t cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = 0; cpu < NR_CPUS; cpu++)
		if (cpus & (1ull << cpu))
			CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/*
 * The first cache's CPUs are busy with others, the second one's with low tasks.  This
 * thread was on the first, may run anywhere, and wakes: counted at the end.
 */
static void low_tasks_of_another_cache_give_way(void **state)
{
	static const struct timespec nap = { .tv_nsec = 2000000 };
	struct busy_thread *low = start_threads(2, SECOND_CACHE, true);
	struct busy_thread *others = start_threads(2, FIRST_CACHE, false);

	await_all(low, 2);
	await_all(others, 2);
	for (unsigned i = 0; i < WAKES; i++) {
		bind_caller(FIRST_CACHE);
		bind_caller(ALL_CPUS);
		nanosleep(&nap, NULL);
	}
	await_all(low, 2);
	await_all(others, 2);
}

static void plug_cpu(unsigned cpu, const char *online)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online",
		 cpu);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, online, 1), 1);
	close(fd);
}

static void cpus_are_hotplugged(void **state)
{
	struct busy_thread *threads = start_threads(THREADS, ALL_CPUS, false);

	for (unsigned i = 0; i < PLUGS; i++) {
		unsigned cpu = i ? 1 : 3;

		plug_cpu(cpu, "0");
		await_all(threads, THREADS);
		plug_cpu(cpu, "1");
		assert_true(busy_bind(&threads[0], 1ull << cpu));
		busy_await(&threads[0], SOME, 1ull << cpu);
		assert_true(busy_bind(&threads[0], ALL_CPUS));
		await_all(threads, THREADS);
	}
	assert_true(scheduler_runs());
}

static void storms_of_forks_are_survived(void **state)
{
	for (unsigned nr = 0; nr < FORKS; nr += FORKS_AT_ONCE) {
		for (unsigned i = 0; i < FORKS_AT_ONCE; i++) {
			pid_t pid = fork();

			assert_true(pid >= 0);
			if (!pid) {
				sched_yield();
				_exit(0);
			}
		}
		for (unsigned i = 0; i < FORKS_AT_ONCE; i++)
			assert_true(wait(NULL) > 0);
	}
}

/* When nothing of this is left: it was not thrown out, and has counted. */
static void scheduler_was_there_all_the_time(void **state)
{
	uint64_t turns_max;

	assert_true(scheduler_runs());
	assert_int_equal(scheduler_end(scheduler, SIGTERM), 0);
	/* Two more for each CPU: the first, and clocks that do not agree to the tick. */
	turns_max = NR_CPUS * ((ktest_now_ns() - started_ns) / TURN_NS + 2);
	assert_true(scheduler_counted("sent to an idle CPU of the cache") > 0);
	assert_true(scheduler_counted("stolen before") > 0);
	assert_true(scheduler_counted("sent to a CPU of a low task") > 0);
	assert_true(scheduler_counted("sent to one of another cache") > 0);
	assert_in_range(scheduler_counted("turns that low ones"), 1, turns_max);
}

static int start_scheduler(void **state)
{
	started_ns = ktest_now_ns();
	scheduler = scheduler_start();
	return 0;
}

#define THREADS_TEST(test) cmocka_unit_test_teardown(test, stop_threads)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_cpus_are_used,
						start_scheduler, stop_threads),
		THREADS_TEST(bound_tasks_and_others_share_a_cpu),
		THREADS_TEST(affinity_is_kept),
		THREADS_TEST(idle_cpus_of_another_cache_are_used),
		THREADS_TEST(low_tasks_and_others_continue),
		THREADS_TEST(low_tasks_of_another_cache_give_way),
		THREADS_TEST(cpus_are_hotplugged),
		KTEST(storms_of_forks_are_survived),
		KTEST(scheduler_was_there_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
