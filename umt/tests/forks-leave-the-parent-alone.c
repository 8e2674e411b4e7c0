/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A child of a fork is not monitored, cannot disturb what its parent monitors,
 * and may monitor itself.  A program that is executed inherits nothing, and
 * whatever way a process ends, its program leaves the kernel with it.
 */
#include "support/subscribers.h"

#include <dirent.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct umt *subscriber;

static int use_in_child(void *arg)
{
	unsigned backend = *(unsigned *)arg;
	struct umt_options options = { .size = sizeof(options),
				       .backend = backend };
	struct umt_event event;
	struct umt_counts counts;
	struct umt *own;

	ktest_check(umt_thread_add(subscriber) == -ESRCH);
	ktest_check(umt_thread_remove(subscriber) == -ESRCH);
	ktest_check(umt_next(subscriber, &event) == 0);
	ktest_check(umt_fd(subscriber) < 0);
	/*
	 * One that the parent has asked for, and perhaps one that it has not.
	 */
	ktest_check(umt_core_fd(subscriber, 0) == -ESRCH);
	ktest_check(umt_core_fd(subscriber, umt_nr_cores(subscriber) - 1) ==
		    -ESRCH);
	ktest_check(umt_core_counts(subscriber, 0, &counts) == 0);
	umt_close(subscriber);

	ktest_check(umt_open(&own, &options) == 0);
	ktest_check(umt_thread_add(own) == 0);
	block_us(1000);
	ktest_check(holds_soon(ready_of(own) == 1));
	ktest_check(holds_soon(sums_of(own).sleeps >= 1));
	umt_close(own);
	return 0;
}

static void a_child_has_its_own(unsigned backend)
{
	int i;

	subscriber = subscriber_of(backend, 0);
	assert_int_equal(umt_thread_add(subscriber), 0);
	assert_true(umt_core_fd(subscriber, 0) >= 0);
	/* The library's own thread has begun: a child forked meanwhile would
	 * have locks of the address sanitizer held for ever. */
	block_us(1000);
	assert_true(backend == UMT_EXPLICIT ||
		    holds_soon(sums_of(subscriber).sleeps >= 1));
	for (i = 0; i < 3; i++) {
		umt_block_begin();
		assert_int_equal(ktest_in_child(use_in_child, &backend), 0);
		umt_block_end();
		assert_true(holds_soon(ready_of(subscriber) == 1));
	}
	block_us(1000);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	umt_close(subscriber);
}

ON_EACH_BACKEND(a_child_has_its_own)

/* In a child: it counts the calling thread. */
static void use_and_close(struct umt *own)
{
	ktest_check(umt_thread_add(own) == 0);
	block_us(1000);
	ktest_check(holds_soon(sums_of(own).sleeps >= 1));
	ktest_check(umt_thread_remove(own) == 0);
	ktest_check(holds_soon(ready_of(own) == 0));
	umt_close(own);
}

static int use_own(void *arg)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = *(unsigned *)arg };
	struct umt *own;

	ktest_check(umt_open(&own, &options) == 0);
	use_and_close(own);
	return 0;
}

static void *opens_own(void *backend)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = *(unsigned *)backend };
	struct umt *own;

	return umt_open(&own, &options) ? NULL : own;
}

/* Another thread opens it, which knows nothing of what is kept of this one. */
static int use_anothers(void *backend)
{
	pthread_t thread;
	void *own;

	ktest_check(!pthread_create(&thread, NULL, opens_own, backend));
	ktest_check(!pthread_join(thread, &own) && own);
	use_and_close(own);
	return 0;
}

/* What is kept of a thread without subscribers is of no use to the child. */
static void a_child_of_a_former_subscriber_too(unsigned backend)
{
	subscriber = subscriber_of(backend, 0);
	assert_int_equal(umt_thread_add(subscriber), 0);
	block_us(1000);
	assert_true(backend == UMT_EXPLICIT ||
		    holds_soon(sums_of(subscriber).sleeps >= 1));
	umt_close(subscriber);
	assert_int_equal(ktest_in_child(use_own, &backend), 0);
	/* Thread sanitizer has no threads after a fork. */
	if (!KTEST_TSAN)
		assert_int_equal(ktest_in_child(use_anothers, &backend), 0);
	assert_int_equal(use_own(&backend), 0);
}

ON_EACH_BACKEND(a_child_of_a_former_subscriber_too)

static int enabled;

static void *enable_umt(void *unused)
{
	int nr = umt_enable(NULL, 0);

	__atomic_store_n(&enabled, nr > 0 ? 1 : -1, __ATOMIC_RELEASE);
	return NULL;
}

static int fork_while_enabling(void *unused)
{
	pthread_t thread;
	pid_t pid;

	ktest_check(!pthread_create(&thread, NULL, enable_umt, NULL));
	do {
		pid = fork();
		if (!pid) {
			/* Not held by the thread that is gone. */
			umt_disable();
			_exit(0);
		}
		ktest_check(ktest_wait_for(pid, 60) == 0);
	} while (!__atomic_load_n(&enabled, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	ktest_check(enabled > 0);
	return 0;
}

static void forks_beside_the_first_enabling(void **state)
{
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers: no forks beside threads that allocate");
	umt_close(subscriber_of(UMT_EXPLICIT, 0));
	assert_int_equal(ktest_in_child_for(fork_while_enabling, NULL, 100), 0);
}

static void the_papers_form_too(void **state)
{
	pid_t pid;

	umt_close(subscriber_of(UMT_EXPLICIT, 0));
	assert_true(umt_enable(NULL, 0) > 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		ktest_check(umt_thread_ctrl(1) == -ESRCH);
		ktest_check(umt_enable(NULL, 0) > 0);
		ktest_check(umt_thread_ctrl(1) == 0);
		umt_disable();
		_exit(0);
	}
	assert_int_equal(ktest_wait_for(pid, 60), 0);
	assert_int_equal(umt_thread_ctrl(1), 0);
	umt_disable();
}

static void programs_inherit_no_descriptor(unsigned backend)
{
	char command[100];

	subscriber = subscriber_of(backend, 0);
	assert_int_equal(umt_thread_add(subscriber), 0);
	assert_true(umt_core_fd(subscriber, 0) >= 0);
	/* The shell's own are 0, 1, 2 and that of the directory. */
	snprintf(command, sizeof(command),
		 "ls -l /proc/self/fd | grep -E 'bpf|perf|eventfd' >&2");
	assert_int_equal(WEXITSTATUS(system(command)), 1);
	umt_close(subscriber);
}

ON_EACH_BACKEND(programs_inherit_no_descriptor)

/* ---- a process that is killed ---- */

/* Numbers of the programs that the process holds. */
static int programs_of(pid_t pid, unsigned *ids, int most)
{
	char path[300], line[200];
	struct dirent *entry;
	int nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid,
			 entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			if (nr < most &&
			    sscanf(line, "prog_id: %u", &ids[nr]) == 1)
				nr++;
		if (file)
			fclose(file);
	}
	closedir(dir);
	return nr;
}

static bool is_loaded(unsigned id)
{
	union bpf_attr attr = { .prog_id = id };
	long fd = syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr));

	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

static void killed_processes_leave_no_program(void **state)
{
	unsigned ids[32];
	int ends[2], nr, i;
	char byte = 0;
	pid_t pid;

	need_own_program();
	assert_int_equal(pipe(ends), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		subscriber = subscriber_of(UMT_BPF, 0);
		ktest_check(umt_thread_add(subscriber) == 0);
		ktest_check(write(ends[1], &byte, 1) == 1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	nr = programs_of(pid, ids, 32);
	assert_true(nr >= 6);
	assert_true(is_loaded(ids[0]));
	kill(pid, SIGKILL);
	assert_true(WIFSIGNALED(ktest_wait_for(pid, 60)));
	for (i = 0; i < nr; i++)
		assert_true(holds_soon(!is_loaded(ids[i])));
}

KTEST_MAIN(KTEST_EACH(a_child_has_its_own),
	   KTEST_EACH(a_child_of_a_former_subscriber_too),
	   KTEST(forks_beside_the_first_enabling), KTEST(the_papers_form_too),
	   KTEST_EACH(programs_inherit_no_descriptor),
	   KTEST(killed_processes_leave_no_program))
