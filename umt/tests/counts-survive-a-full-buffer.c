/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The thread that reads the buffers of perf may get no CPU for long: then buffers fill up,
 * and the last block of a thread that sleeps for ever is lost.  Once the buffers are
 * read the thread counts as blocked nevertheless.
 */
#include "support/subscribers.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* A buffer takes 255 switches, which are two for each nap. */
#define NAPS 1000

static struct umt *subscriber;
static int start[2], hold[2], release[2];
static pid_t sleeper;
static int napped;

static void read_byte(int fd)
{
	char byte;

	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
}

/* The newest thread of the process: the kernel lists them in their order. */
static pid_t newest_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t newest = 0;

	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		newest = atoi(entry->d_name);
	closedir(tasks);
	return newest;
}

static char state_of(pid_t tid)
{
	char path[64], line[256] = "";
	const char *behind_name;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	behind_name = strrchr(line, ')');
	assert_non_null(behind_name);
	return behind_name[2];
}

static void *nap_and_sleep(void *arg)
{
	ktest_check(!umt_thread_add(subscriber));
	__atomic_store_n(&sleeper, gettid(), __ATOMIC_SEQ_CST);
	read_byte(start[0]);
	for (int i = 0; i < NAPS; i++)
		nap_us(1);
	__atomic_store_n(&napped, 1, __ATOMIC_SEQ_CST);
	read_byte(start[0]);
	ktest_check(!umt_thread_remove(subscriber));
	return NULL;
}

/* Stops the thread until it is told to release it.  Exits with 77 if it may not. */
static void hold_thread(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		_exit(77);
	ktest_check(!ptrace(PTRACE_INTERRUPT, tid, NULL, NULL));
	ktest_check(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status));
	ktest_check(write(hold[1], "h", 1) == 1);
	close(hold[1]);
	read_byte(release[0]);
	_exit(0);
}

static pid_t fork_holder(pid_t tid)
{
	pid_t pid;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(release[1]);
		hold_thread(tid);
	}
	close(hold[1]);
	return pid;
}

static void blocks_are_not_lost(void **state)
{
	char byte;
	pthread_t thread;
	pid_t server, holder;
	bool held;

	subscriber = subscriber_of(UMT_PERF, 0);
	server = newest_thread();
	assert_int_equal(pipe(start) | pipe(hold) | pipe(release), 0);
	assert_int_equal(pthread_create(&thread, NULL, nap_and_sleep, NULL), 0);
	assert_true(holds_soon(load(sleeper) && ready_of(subscriber) == 0));

	holder = fork_holder(server);
	held = read(hold[0], &byte, 1) == 1;
	assert_int_equal(write(start[1], "g", 1), 1);
	assert_true(holds_soon(load(napped) && state_of(sleeper) == 'S'));
	close(release[1]);
	if (!held)
		print_message("# the thread could not be held\n");
	assert_int_equal(ktest_wait_for(holder, 60), held ? 0 : 77 << 8);
	assert_true(holds_soon(ready_of(subscriber) == 0));
	if (held)
		assert_true(sums_of(subscriber).sleeps < NAPS);

	assert_int_equal(write(start[1], "g", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_all_zero(subscriber);
	umt_close(subscriber);
	if (!held)
		ktest_skip("no thread may be held here (ptrace)");
}

KTEST_MAIN(KTEST(blocks_are_not_lost))
