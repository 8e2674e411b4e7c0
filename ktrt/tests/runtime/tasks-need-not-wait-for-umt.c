/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktrt_start() does not wait until UMT is there: tasks run meanwhile, and go on
 * when the runtime changes over.  It may be stopped, and the process forked, at
 * any moment.
 */
#include "support/runs.h"

#include "threads.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static unsigned done;

static const char *backend_now(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&info), 0);
	return info.backend;
}

static bool is_loading(void)
{
	return !strcmp(backend_now(), "loading");
}

static int compute_a_little(void *arg)
{
	uint64_t until = ktest_now_ns() + 20000;

	while (ktest_now_ns() < until)
		;
	more(done);
	return 0;
}

static int sleep_a_little(void *arg)
{
	nap_us(100);
	more(done);
	return 0;
}

/* Blocks, computes, waits for children, and yields. */
static int mix_waits(void *arg)
{
	for (int i = 0; i < 20; i++) {
		int error = ktrt_spawn(
			i % 3 ? compute_a_little : sleep_a_little, NULL);

		if (error)
			return error;
		if (i % 7 == 0)
			ktrt_yield();
	}
	return ktrt_wait();
}

static void run_mix(void)
{
	unsigned before = get(done);

	for (int i = 0; i < 10; i++)
		assert_int_equal(ktrt_spawn(mix_waits, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(done), before + 200);
}

/* ---- an umtd that never answers ---- */

static char directory[] = "/tmp/ktrt-umtd-XXXXXX";

static int listen_silently(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	assert_true(fd >= 0);
	assert_non_null(mkdtemp(directory));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", directory);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(fd, 8), 0);
	setenv("UMT_SOCKET", name.sun_path, 1);
	return fd;
}

static void stop_listening(int fd)
{
	close(fd);
	unlink(getenv("UMT_SOCKET"));
	rmdir(directory);
	unsetenv("UMT_SOCKET");
}

/* Does the library ask? */
static bool is_asked(int fd, int *connection)
{
	*connection = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	return *connection >= 0;
}

/* It waits for an answer for ten seconds, then it hangs up. */
static bool still_waits(int connection)
{
	char ask[4096];
	ssize_t bytes;

	do {
		bytes = recv(connection, ask, sizeof(ask), 0);
	} while (bytes > 0);
	return bytes < 0 && errno == EAGAIN;
}

static void tasks_run_while_it_is_loaded(void **state)
{
	bool waits = false, asked = false;
	int fd = listen_silently();

	unsetenv("UMT_BACKEND");
	/* Again if this thread got no CPU for so long. */
	for (int i = 0; i < 3 && !waits; i++) {
		int connection = -1;

		start_way(&all_ways[i % 2]);
		run_mix();
		if (holds_soon(is_asked(fd, &connection) || !is_loading())) {
			asked |= connection >= 0;
			waits = connection >= 0 && still_waits(connection);
		}
		assert_int_equal(ktrt_stop(), 0);
		close(connection);
	}
	stop_listening(fd);
	if (!asked)
		ktest_skip("without eBPF nothing is loaded");
	assert_true(waits);
}

/* ---- changing over ---- */

static void work_until_it_is_there(void)
{
	unsigned rounds = 0;

	while (is_loading() || rounds < 3) {
		run_mix();
		rounds++;
	}
	for (int i = 0; i < 10; i++)
		run_mix();
	printf("# %s after %u rounds\n", backend_now(), rounds);
}

static void tasks_continue_when_it_is_there(void **state)
{
	in_each_way(work_until_it_is_there);
}

/* Those that were blocked when it came are seen when they go on. */
static int pipes[8][2];

static int read_one(void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1) == 1 ? mix_waits(NULL) : -EIO;
}

static void block_until_it_is_there(void)
{
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
		assert_int_equal(ktrt_spawn(read_one, &pipes[i][0]), 0);
	}
	assert_true(holds_soon(!is_loading()));
	for (int i = 0; i < 8; i++)
		assert_int_equal(write(pipes[i][1], "x", 1), 1);
	assert_int_equal(ktrt_wait(), 0);
	run_mix();
	for (int i = 0; i < 8; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

static void workers_may_be_blocked_when_it_comes(void **state)
{
	in_each_way(block_until_it_is_there);
}

/* ---- stopping and forking meanwhile ---- */

static void it_may_be_stopped_at_any_moment(void **state)
{
	uint64_t random = ktest_seed();

	for (int i = 0; i < 12; i++) {
		start_way(&all_ways[i % 2 ? 0 : 4]);
		if (i % 3)
			run_mix();
		nap_us((long)ktest_random_below(&random, 400000));
		assert_int_equal(ktrt_stop(), 0);
	}
}

static void it_may_be_forked_meanwhile(void **state)
{
	if (KTEST_TSAN)
		ktest_skip("thread sanitizer ends what starts threads then");
	for (int i = 0; i < 3; i++) {
		int status;
		pid_t child;

		start_way(&all_ways[0]);
		nap_us(i * 50000);
		if (KTEST_ASAN)
			threads_let_begin();
		child = fork();
		if (!child) {
			alarm(60);
			if (ktrt_spawn(mix_waits, NULL) != -ESRCH ||
			    ktrt_start(NULL))
				_exit(1);
			_exit(ktrt_run(mix_waits, NULL) || ktrt_stop());
		}
		run_mix();
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(ktrt_stop(), 0);
	}
}

KTEST_MAIN(KTEST(tasks_run_while_it_is_loaded),
	   KTEST(tasks_continue_when_it_is_there),
	   KTEST(workers_may_be_blocked_when_it_comes),
	   KTEST(it_may_be_stopped_at_any_moment),
	   KTEST(it_may_be_forked_meanwhile))
