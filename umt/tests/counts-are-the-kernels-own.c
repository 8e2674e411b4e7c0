/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Under everything that makes threads block, wake, move and end, the counts are
 * what the kernel itself counts: each switch-out of a monitored thread is a
 * sleep or a preemption, sleeps are the voluntary ones, nothing is negative in
 * between and nothing is left at the end.  The kernel counts twice: how often a
 * thread was switched out (getrusage(2)), and how often it was given a CPU
 * (schedstat), by other code.
 */
#include "support/subscribers.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SECONDS 3
#define FILE_BYTES (1 << 20)
/* One lives at a time; those that were joined may still be on their way out, and
 * wait for a CPU there. */
#define BRIEF_MOST 50

static struct umt *subscriber, *brief;
static uint32_t stop, nr_signals, nr_live, untold;
static uint64_t seed, voluntary, involuntary, arrived, slack;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int file_fd, pipes[2][2];
static pthread_t victims[2];

static bool is_stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static void add_to(uint64_t *sum, long n)
{
	__atomic_fetch_add(sum, (uint64_t)n, __ATOMIC_SEQ_CST);
}

static struct rusage read_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage;
}

static long switches_between(struct rusage from, struct rusage to)
{
	return to.ru_nvcsw - from.ru_nvcsw + to.ru_nivcsw - from.ru_nivcsw;
}

/* How often the kernel has given this thread a CPU; 0: it does not tell. */
static uint64_t read_arrivals(int schedstat)
{
	unsigned long long nr;
	char text[100] = "";

	if (pread(schedstat, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "%*u %*u %llu", &nr) != 1)
		return 0;
	return nr;
}

/* The same, less what came after @then. */
static uint64_t arrivals_at(int schedstat, struct rusage then)
{
	struct rusage before;
	uint64_t nr;

	do {
		before = read_switches();
		nr = read_arrivals(schedstat);
	} while (switches_between(before, read_switches()));
	if (!nr)
		__atomic_store_n(&untold, 1, __ATOMIC_RELAXED);
	return nr - (uint64_t)switches_between(then, before);
}

/* ---- what threads do ---- */

static void sleep_briefly(uint64_t *random)
{
	nap_us((long)ktest_random_below(random, 200));
}

static void take_lock(uint64_t *random)
{
	pthread_mutex_lock(&mutex);
	if (!ktest_random_below(random, 8))
		nap_us(10);
	pthread_mutex_unlock(&mutex);
}

static void send_ping(uint64_t *random)
{
	char byte = 0;

	if (write(pipes[0][1], &byte, 1) == 1 && !is_stopped())
		assert_true(read(pipes[1][0], &byte, 1) >= 0 || errno == EINTR);
}

static void answer_ping(uint64_t *random)
{
	char byte;

	if (read(pipes[0][0], &byte, 1) == 1)
		assert_int_equal(write(pipes[1][1], &byte, 1), 1);
}

static void sync_block(uint64_t *random)
{
	static char block[4096] __attribute__((aligned(4096)));
	off_t at = (off_t)ktest_random_below(random, FILE_BYTES / 4096) * 4096;

	if (pwrite(file_fd, block, sizeof(block), at) < 0)
		assert_true(errno == EINTR);
	if (!ktest_random_below(random, 4))
		fdatasync(file_fd);
}

static void read_block(uint64_t *random)
{
	char block[4096] __attribute__((aligned(4096)));
	off_t at = (off_t)ktest_random_below(random, FILE_BYTES / 4096) * 4096;

	posix_fadvise(file_fd, at, 4096, POSIX_FADV_DONTNEED);
	if (pread(file_fd, block, sizeof(block), at) < 0)
		assert_true(errno == EINTR);
}

static void touch_pages(uint64_t *random)
{
	size_t bytes = 64 * 4096;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (i = 0; i < bytes; i += 4096)
		memory[i] = 1;
	munmap(memory, bytes);
}

static void change_cpu(uint64_t *random)
{
	cpu_set_t one, all;
	int nr = (int)sysconf(_SC_NPROCESSORS_ONLN);
	int cpu;

	CPU_ZERO(&one);
	CPU_ZERO(&all);
	CPU_SET(ktest_random_below(random, (uint64_t)nr), &one);
	for (cpu = 0; cpu < nr; cpu++)
		CPU_SET((size_t)cpu, &all);
	sched_setaffinity(0, sizeof(one), &one);
	sched_yield();
	sched_setaffinity(0, sizeof(all), &all);
}

static void change_policy(uint64_t *random)
{
	static const int policies[] = { SCHED_OTHER, SCHED_BATCH, SCHED_IDLE };
	struct sched_param none = { 0 };
	pid_t self = (pid_t)syscall(SYS_gettid);

	sched_setscheduler(0, policies[ktest_random_below(random, 3)], &none);
	setpriority(PRIO_PROCESS, (id_t)self,
		    (int)ktest_random_below(random, 5));
	nap_us(50);
	sched_setscheduler(0, SCHED_OTHER, &none);
}

static void compute_briefly(uint64_t *random)
{
	uint64_t until = ktest_now_ns() + ktest_random_below(random, 300000);

	while (ktest_now_ns() < until)
		;
}

/* Waits; signals end the wait all the time. */
static void is_signalled(uint64_t *random)
{
	nap_us(1000);
}

/* Ends as a member, of a subscriber of its own: how often it blocks on its way out
 * nobody can tell us. */
static void *short_life(void *unused)
{
	assert_int_equal(umt_thread_add(brief), 0);
	sched_yield();
	return NULL;
}

typedef void (*doing)(uint64_t *random);

static const doing doings[] = {
	is_signalled, is_signalled, sleep_briefly, take_lock,	    take_lock,
	send_ping,    answer_ping,  sync_block,	   read_block,	    touch_pages,
	change_cpu,   change_cpu,   change_policy, compute_briefly,
};

#define NR_THREADS KTEST_ARRAY_SIZE(doings)

/* ---- the books ---- */

/* From the moment of joining on; a switch in that very moment is unclear. */
static struct rusage join_subscriber(void)
{
	struct rusage before, after;

	for (;;) {
		before = read_switches();
		assert_int_equal(umt_thread_add(subscriber), 0);
		after = read_switches();
		if (!switches_between(before, after))
			return after;
		add_to(&slack, switches_between(before, after));
		return before;
	}
}

static void leave_subscriber(struct rusage from, int schedstat, uint64_t first)
{
	struct rusage then = read_switches(), before, after;
	uint64_t last = arrivals_at(schedstat, then);

	before = read_switches();
	assert_int_equal(umt_thread_remove(subscriber), 0);
	after = read_switches();
	add_to(&slack, switches_between(before, after));
	add_to(&voluntary, after.ru_nvcsw - from.ru_nvcsw);
	add_to(&involuntary, after.ru_nivcsw - from.ru_nivcsw);
	add_to(&arrived, (long)(last - first) + switches_between(then, after));
}

static void *run_worker(void *number)
{
	size_t i = (size_t)number;
	uint64_t random = seed + i;
	struct rusage from = join_subscriber();
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	uint64_t first = arrivals_at(schedstat, from);

	__atomic_fetch_add(&nr_live, 1, __ATOMIC_SEQ_CST);
	while (!is_stopped())
		doings[i](&random);
	leave_subscriber(from, schedstat, first);
	close(schedstat);
	__atomic_fetch_sub(&nr_live, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void on_signal(int signo)
{
	__atomic_fetch_add(&nr_signals, 1, __ATOMIC_SEQ_CST);
}

/* From outside: stops, continues and traces us. */
static int torment_parent(void *unused)
{
	pid_t pid = getppid();
	int i;

	for (i = 0; i < 200; i++) {
		if (kill(pid, SIGSTOP))
			break;
		nap_us(300);
		kill(pid, SIGCONT);
		nap_us(5000);
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
			continue;
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		waitpid(pid, NULL, __WALL);
		nap_us(200);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	kill(pid, SIGCONT);
	return 0;
}

static void *run_tormentor(void *unused)
{
	assert_int_equal(ktest_in_child(torment_parent, NULL), 0);
	return NULL;
}

static void check_counts(const struct umt *watched, long most)
{
	const struct umt_core *cores = umt_cores(watched);
	int cpu;

	for (cpu = 0; cpu < umt_nr_cores(watched); cpu++) {
		int ready = umt_ready(cores, cpu);

		assert_true(ready >= 0);
		assert_true(ready <= most);
	}
}

/* As often as it can: a negative number would show for a moment only. */
static void watch_counts(void)
{
	uint64_t until = ktest_now_ns() + SECONDS * 1000000000ull;
	uint64_t checks = 0, told = 0;
	struct umt_event event;
	pthread_t thread;

	while (ktest_now_ns() < until) {
		check_counts(subscriber, NR_THREADS);
		check_counts(brief, BRIEF_MOST);
		while (umt_next(subscriber, &event) == 1)
			told++;
		/* Those that were joined need a CPU to be gone. */
		if (checks++ % 64 || ready_of(brief) > BRIEF_MOST / 2)
			continue;
		pthread_kill(victims[checks / 64 % 2], SIGUSR1);
		assert_int_equal(
			pthread_create(&thread, NULL, short_life, NULL), 0);
		pthread_join(thread, NULL);
	}
	printf("# %llu looks; told of %llu idle cores, at %llu blocks and "
	       "wakeups\n",
	       (unsigned long long)checks, (unsigned long long)told,
	       (unsigned long long)(sums_of(subscriber).sleeps +
				    sums_of(subscriber).wakes));
}

static void prepare_files(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	const char *tmp = getenv("TMPDIR");
	char path[4096];
	int i;

	sigaction(SIGUSR1, &action, NULL);
	for (i = 0; i < 2; i++)
		assert_int_equal(pipe(pipes[i]), 0);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/umt-XXXXXX",
			 tmp ? tmp : "/tmp");
		/* A file system in memory may not know O_DIRECT. */
		file_fd = mkostemp(path, i ? 0 : O_DIRECT);
		if (file_fd >= 0)
			break;
	}
	assert_true(file_fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(file_fd, FILE_BYTES), 0);
}

static void stop_all(pthread_t *threads)
{
	char byte = 0;
	size_t i;

	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 8; i++) {
		assert_int_equal(write(pipes[0][1], &byte, 1), 1);
		assert_int_equal(write(pipes[1][1], &byte, 1), 1);
	}
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void every_switch_is_counted(void **state)
{
	pthread_t threads[NR_THREADS], outside;
	struct sums sums;
	uint64_t counted;
	size_t i;

	subscriber = subscriber_of(UMT_BPF, 0);
	brief = subscriber_of(UMT_BPF, 0);
	seed = ktest_seed();
	umt_want(subscriber, 1);
	prepare_files();
	for (i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_worker,
						(void *)i),
				 0);
	victims[0] = threads[0];
	victims[1] = threads[1];
	pthread_create(&outside, NULL, run_tormentor, NULL);
	watch_counts();
	stop_all(threads);
	pthread_join(outside, NULL);

	assert_true(holds_soon(!ready_of(subscriber) && !ready_of(brief)));
	assert_all_zero(subscriber);
	assert_all_zero(brief);
	sums = sums_of(subscriber);
	printf("# sleeps %llu of voluntary %llu; preempts %llu of involuntary "
	       "%llu; arrivals %llu; moves %llu, repairs %llu, signals %u, "
	       "unclear %llu\n",
	       (unsigned long long)sums.sleeps, (unsigned long long)voluntary,
	       (unsigned long long)sums.preempts,
	       (unsigned long long)involuntary, (unsigned long long)arrived,
	       (unsigned long long)sums.moved_out,
	       (unsigned long long)sums.repairs, nr_signals,
	       (unsigned long long)slack);
	counted = sums.sleeps + sums.preempts;
	assert_true(counted <= voluntary + involuntary + slack);
	assert_true(counted + slack >= voluntary + involuntary);
	/* Whoever arrives was switched out before; a thousandth for accounts
	 * that are kept at other moments.  A kernel that preempts itself does
	 * not
	 * count who comes back after it had begun to sleep. */
	if (!untold) {
		assert_true(arrived <= counted + slack + counted / 1000);
		assert_true(arrived + slack + sums.preempts + counted / 1000 >=
			    counted);
	}
	/* A wait that a signal prevents is voluntary and yet no sleep. */
	assert_true(sums.sleeps <= voluntary + slack);
	assert_true(sums.sleeps + slack + voluntary / 10 >= voluntary);
	umt_close(brief);
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(every_switch_is_counted))
