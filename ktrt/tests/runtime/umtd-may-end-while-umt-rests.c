/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A umtd that ends while UMT rests: tasks go on, without UMT, and the thread that was to
 * wake it is joined, although nobody works any more when that fails.
 */
#include "support/runs.h"
#include "bpf_links.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/rt.h"

static char directory[] = "/tmp/ktrt-umtd-XXXXXX";
static struct sockaddr_un name = { .sun_family = AF_UNIX };
static pid_t umtd;
static unsigned ran;

static bool umtd_answers(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool answers;

	assert_true(fd >= 0);
	answers = !connect(fd, (struct sockaddr *)&name, sizeof(name));
	close(fd);
	return answers;
}

static void umtd_exec(void)
{
	const char *build = getenv("KTASK_BUILD");
	char program[4096];

	snprintf(program, sizeof(program), "%s/umtd", build ? build : "build");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(program, "umtd", "--socket", name.sun_path, NULL);
	perror(program);
	_exit(1);
}

static void umtd_begin(void)
{
	if (getuid())
		ktest_skip("only root may run umtd");
	assert_non_null(mkdtemp(directory));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", directory);
	setenv("UMT_SOCKET", name.sun_path, 1);
	unsetenv("UMT_BACKEND");
	fflush(stdout);
	umtd = fork();
	if (!umtd)
		umtd_exec();
	assert_true(holds_soon(umtd_answers()));
}

static void umtd_kill(void)
{
	kill(umtd, SIGKILL);
	assert_int_equal(waitpid(umtd, NULL, 0), umtd);
	unlink(name.sun_path);
	rmdir(directory);
	unsetenv("UMT_SOCKET");
}

static int spin_task(void *arg)
{
	uint64_t until = ktest_now_ns() + 2000000;

	while (ktest_now_ns() < until)
		;
	more(ran);
	return 0;
}

static void run_some_tasks(void)
{
	for (int i = 0; i < 8; i++)
		assert_int_equal(ktrt_spawn(spin_task, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
}

static bool is_joined(void)
{
	bool joined;

	mutex_take(&rt.load_lock, RANK_LOAD);
	joined = !rt.load;
	mutex_drop(&rt.load_lock, RANK_LOAD);
	return joined;
}

/* umtd has been told of it, too. */
static bool umt_is_at_rest(void)
{
	return at_load(&rt.resting) && !nr_bpf_links();
}

static void the_waking_thread_is_joined(void **state)
{
	umtd_begin();
	assert_int_equal(ktrt_start(NULL), 0);
	assert_true(holds_soon(strcmp(backend_in_use(), "loading")));
	if (strcmp(backend_in_use(), "bpf")) {
		assert_int_equal(ktrt_stop(), 0);
		umtd_kill();
		ktest_skip("umtd can load no program");
	}
	assert_true(holds_soon(umt_is_at_rest()));
	kill(umtd, SIGSTOP);
	while (!at_load(&rt.loading))
		run_some_tasks();
	/* It waits for an answer; the leader sleeps as long as nobody works. */
	assert_true(holds_soon(at_load(&rt.leader_sleeps)));
	umtd_kill();
	assert_true(holds_soon(!at_load(&rt.loading)));
	assert_true(holds_soon(is_joined()));
	assert_string_equal(backend_in_use(), "none");
	run_some_tasks();
	assert_int_equal(get(ran) % 8, 0);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(the_waking_thread_is_joined))
