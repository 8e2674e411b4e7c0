/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * With umtd a process without rights has the exact counts, for its own
 * threads; a umtd that is killed takes nothing away from anybody, and the next
 * one serves whoever comes next; a process that is killed leaves nothing.
 */
#include "support/umtd.h"
#include "refuse.h"

#include <dirent.h>
#include <linux/bpf.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct umtd umtd;

static int is_told_who_serves(void *unused)
{
	struct umt_backends info = { .size = sizeof(info) };

	become_somebody(SOMEBODY);
	ask_backends(&info);
	ktest_check(info.backend == UMT_BPF);
	fprintf(stderr, "# %s\n", info.why[UMT_ANY]);
	ktest_check(strstr(info.why[UMT_ANY], umtd.path) != NULL);
	ktest_check(strstr(info.why[UMT_ANY], "at most 32 subscribers") !=
		    NULL);
	return 0;
}

/* As before Linux 5.19, where kernel.unprivileged_bpf_disabled is set. */
static int is_told_that_it_is_of_no_use(void *unused)
{
	struct umt_backends info = { .size = sizeof(info) };
	struct umt *subscriber;

	become_somebody(SOMEBODY);
	ktest_check(refuse_call(SYS_bpf, 0, BPF_PROG_TEST_RUN,
				BPF_PROG_TEST_RUN, EPERM));
	ask_backends(&info);
	fprintf(stderr, "# %s\n", info.why[UMT_BPF]);
	ktest_check(info.backend == UMT_PERF || info.backend == UMT_EXPLICIT);
	ktest_check(strstr(info.why[UMT_BPF], umtd.path) != NULL);
	ktest_check(strstr(info.why[UMT_BPF], "unprivileged_bpf") != NULL);
	ktest_check(umt_open(&subscriber, NULL) == 0);
	ktest_check(umt_backend(subscriber) == info.backend);
	umt_close(subscriber);
	return 0;
}

static int is_told_that_there_is_none(void *unused)
{
	struct umt_backends info = { .size = sizeof(info) };

	become_somebody(SOMEBODY);
	setenv("UMT_SOCKET", "/nonexistent/socket", 1);
	ask_backends(&info);
	fprintf(stderr, "# %s\n", info.why[UMT_BPF]);
	ktest_check(strstr(info.why[UMT_BPF],
			   "; no umtd at /nonexistent/socket") != NULL);
	return 0;
}

static int has_events_and_descriptors(void *unused)
{
	struct umt_event event = { 0 };
	struct umt_counts counts;
	struct pollfd polled = { .events = POLLIN };
	struct umt *subscriber, *second;
	int cpu;

	become_somebody(SOMEBODY);
	subscriber = subscribe_by_umtd(UMT_TRACE);
	second = subscribe_by_umtd(0);
	ktest_check(subscriber && second);
	polled.fd = umt_core_fd(second, 0);
	ktest_check(polled.fd >= 0);
	for (cpu = 1; cpu < umt_nr_cores(second); cpu++)
		ktest_check(umt_core_fd(second, cpu) >= 0);
	ktest_check(umt_thread_add(subscriber) == 0);
	ktest_check(umt_thread_add(second) == 0);
	ktest_check(umt_thread_add(second) == -EEXIST);
	nap_us(1000);
	ktest_check(umt_next(subscriber, &event) == 1 && event.kind == UMT_NEW);
	ktest_check(event.detail == getpid());
	ktest_check(umt_core_counts(second, 0, &counts) == 0);
	umt_close(subscriber);
	/* The other goes on. */
	ktest_check(umt_thread_remove(second) == 0);
	umt_close(second);
	/* What its threads start is none of its business. */
	ktest_check(!subscribe_by_umtd(UMT_INHERIT));
	return 0;
}

static void a_process_without_rights_is_served(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(is_served, NULL), 0);
	assert_int_equal(as_somebody(is_told_who_serves, NULL), 0);
	assert_int_equal(as_somebody(has_events_and_descriptors, NULL), 0);
	umtd_end(&umtd);
}

static void who_is_not_served_is_told_why(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(is_told_that_it_is_of_no_use, NULL), 0);
	assert_int_equal(as_somebody(is_told_that_there_is_none, NULL), 0);
	assert_int_equal(as_somebody(is_served, NULL), 0);
	umtd_end(&umtd);
}

/* ---- umtd is killed ---- */

static uint32_t stop;

static void *nap_until_stopped(void *subscriber)
{
	ktest_check(umt_thread_add(subscriber) == 0);
	while (!load(stop))
		nap_us(50);
	ktest_check(umt_thread_remove(subscriber) == 0);
	return NULL;
}

static bool counts_grow(const struct umt *subscriber)
{
	uint64_t sleeps = sums_of(subscriber).sleeps;

	return holds_soon(sums_of(subscriber).sleeps > sleeps + 100);
}

static void send_byte(int fd)
{
	ktest_check(write(fd, "", 1) == 1);
}

/* Return: false if the other process has ended. */
static bool receives_byte(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static int to_child[2], to_parent[2];

/* Each has only its own ends: the end of one is seen by the other. */
static pid_t fork_with_pipes(int (*func)(void *arg))
{
	pid_t pid;

	assert_int_equal(pipe(to_child) | pipe(to_parent), 0);
	fflush(stdout);
	pid = fork();
	close(to_parent[pid ? 1 : 0]);
	close(to_child[pid ? 0 : 1]);
	if (!pid)
		_exit(func(NULL));
	return pid;
}

static void close_pipes(void)
{
	close(to_parent[0]);
	close(to_child[1]);
}

static int outlives_umtd(void *unused)
{
	struct umt *subscriber, *next;
	pthread_t threads[4];
	int i;

	become_somebody(SOMEBODY);
	subscriber = subscribe_by_umtd(0);
	ktest_check(subscriber != NULL);
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, nap_until_stopped,
			       subscriber);
	ktest_check(counts_grow(subscriber));
	send_byte(to_parent[1]);
	/* It is killed. */
	ktest_check(receives_byte(to_child[0]));
	ktest_check(counts_grow(subscriber));
	ktest_check(subscribe_by_umtd(0) == NULL);
	ktest_check(umt_core_fd(subscriber, 0) < 0);
	send_byte(to_parent[1]);
	/* Another one is there. */
	ktest_check(receives_byte(to_child[0]));
	next = subscribe_by_umtd(0);
	ktest_check(next != NULL);
	ktest_check(umt_thread_add(next) == 0);
	/* It is its own naps that are counted. */
	ktest_check(holds_soon(sums_of(next).sleeps >= 1));
	ktest_check(counts_grow(subscriber));
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ktest_check(holds_soon(!ready_of(subscriber)));
	ktest_check(umt_thread_remove(next) == 0);
	umt_close(subscriber);
	umt_close(next);
	return 0;
}

static void a_killed_umtd_takes_nothing_away(void **state)
{
	pid_t pid;
	int i;

	umtd_begin(&umtd);
	pid = fork_with_pipes(outlives_umtd);
	assert_true(receives_byte(to_parent[0]));
	umtd_kill(&umtd);
	send_byte(to_child[1]);
	assert_true(receives_byte(to_parent[0]));
	/* The socket that the dead one left is no hindrance. */
	umtd_run(&umtd);
	send_byte(to_child[1]);
	assert_int_equal(ktest_wait_for(pid, 200), 0);
	close_pipes();
	for (i = 0; i < 2; i++) {
		umtd_kill(&umtd);
		umtd_run(&umtd);
		assert_int_equal(as_somebody(is_served, NULL), 0);
	}
	umtd_end(&umtd);
}

/* ---- umtd is killed while it is asked ---- */

#define ASKERS 3
#define KILLS 6

static uint32_t *enough;

/* Return: was there somebody who served? */
static bool is_served_once(void)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF };
	struct umt *subscriber;

	if (umt_open(&subscriber, &options))
		return false;
	ktest_check(umt_thread_add(subscriber) == 0);
	nap_us(100);
	umt_core_fd(subscriber, 0);
	ktest_check(umt_thread_remove(subscriber) == 0);
	ktest_check(ready_of(subscriber) == 0);
	umt_close(subscriber);
	return true;
}

static int asks_again_and_again(void *unused)
{
	become_somebody(SOMEBODY);
	while (!load(*enough))
		if (!is_served_once())
			nap_us(1000);
	ktest_check(holds_soon(is_served_once()));
	return 0;
}

static void whoever_asks_meanwhile_is_served_later(void **state)
{
	pid_t pids[ASKERS];
	int i;

	umtd_begin(&umtd);
	enough = mmap(NULL, sizeof(*enough), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(enough, MAP_FAILED);
	fflush(stdout);
	for (i = 0; i < ASKERS; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(asks_again_and_again(NULL));
	}
	for (i = 0; i < KILLS; i++) {
		nap_us(20000L * i);
		umtd_kill(&umtd);
		umtd_run(&umtd);
	}
	__atomic_store_n(enough, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < ASKERS; i++)
		assert_int_equal(ktest_wait_for(pids[i], 60), 0);
	munmap(enough, sizeof(*enough));
	umtd_end(&umtd);
}

/* ---- a client is killed ---- */

static int holds_all_and_waits(void *unused)
{
	int i;

	become_somebody(SOMEBODY);
	/* A change of the user would clear it.  If the parent ended before, nobody reads the
	 * byte below. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < 32; i++)
		ktest_check(subscribe_by_umtd(0) != NULL);
	ktest_check(subscribe_by_umtd(0) == NULL);
	send_byte(to_parent[1]);
	for (;;)
		pause();
	return 1;
}

static void a_killed_process_leaves_capacity_for_the_next(void **state)
{
	pid_t pid;

	umtd_begin(&umtd);
	pid = fork_with_pipes(holds_all_and_waits);
	assert_true(receives_byte(to_parent[0]));
	close_pipes();
	/* What is too much for one is not for another subscriber. */
	umt_close(subscriber_of(UMT_BPF, 0));
	kill(pid, SIGKILL);
	assert_true(WIFSIGNALED(ktest_wait_for(pid, 60)));
	assert_true(holds_soon(as_somebody(is_served, NULL) == 0));
	umtd_end(&umtd);
}

/* ---- and everything ends ---- */

/* Numbers of programs in the descriptors of a process. */
static int programs_of(pid_t pid)
{
	char path[300], line[200];
	struct dirent *entry;
	unsigned id;
	int nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid,
			 entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			nr += sscanf(line, "prog_id: %u", &id) == 1;
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return nr;
}

static void the_program_goes_when_nobody_uses_it(void **state)
{
	struct umt *subscriber;
	int i;

	umtd_begin(&umtd);
	assert_int_equal(programs_of(umtd.pid), 0);
	subscriber = subscriber_of(UMT_BPF, 0);
	assert_true(programs_of(umtd.pid) > 0);
	/* It keeps what it serves by, and nothing more, in mind. */
	assert_true(programs_of(getpid()) > 0);
	umt_close(subscriber);
	assert_int_equal(programs_of(getpid()), 0);
	/* It lingers for ten seconds, and is the same program for each variant of
	 * this one. */
	if (!KTEST_ASAN && !KTEST_TSAN) {
		for (i = 0; i < 3 && programs_of(umtd.pid); i++)
			holds_soon(!programs_of(umtd.pid));
		assert_int_equal(programs_of(umtd.pid), 0);
	}
	assert_int_equal(as_somebody(is_served, NULL), 0);
	umtd_end(&umtd);
}

KTEST_MAIN(KTEST(a_process_without_rights_is_served),
	   KTEST(who_is_not_served_is_told_why),
	   KTEST(a_killed_umtd_takes_nothing_away),
	   KTEST(whoever_asks_meanwhile_is_served_later),
	   KTEST(a_killed_process_leaves_capacity_for_the_next),
	   KTEST(the_program_goes_when_nobody_uses_it))
