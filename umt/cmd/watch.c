/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See watch.h.  This process is monitored while it forks.  The child inherits that, so no
 * event of the child is missed.
 *
 * Threads of a process that runs already are attached one by one.  Threads that they make
 * from then on inherit that.
 *
 * Behaves badly: what the command leaves running in the background is watched only until
 * the command ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/proc_stat.h"
#include "lib/subscriber.h"
#include "util/monotonic_clock.h"
#include "thread_names.h"
#include "report_error.h"
#include "watch.h"

#define POLL_MS 20
#define RING_BYTES (8u << 20)

static int open_subscriber(struct umt **subscriber)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF,
				       .flags = UMT_TRACE | UMT_INHERIT,
				       .ring_bytes = RING_BYTES };
	struct umt_backends backends = { .size = sizeof(backends) };
	int error = umt_open(subscriber, &options);

	if (!error)
		return 0;
	/* Do not use umtd, which refuses UMT_INHERIT: load the program here. */
	setenv("UMT_SOCKET", "", 1);
	umt_info(&backends);
	return say_fail("watching threads: %s", backends.why[UMT_BPF][0]
							? backends.why[UMT_BPF]
							: strerror(-error));
}

/*
 * SIGINT and SIGQUIT of the terminal are for the command, not for this process.  SIGCHLD
 * must not be ignored, as a parent may have set it: else the child cannot be waited for.
 */
static const struct {
	int number;
	void (*handler)(int number);
} caught_signals[] = {
	{ SIGINT, SIG_IGN },
	{ SIGQUIT, SIG_IGN },
	{ SIGCHLD, SIG_DFL },
};

#define NR_SIGNALS (sizeof(caught_signals) / sizeof(caught_signals[0]))

static struct sigaction former_actions[NR_SIGNALS];

static void take_signals(void)
{
	size_t i;

	for (i = 0; i < NR_SIGNALS; i++) {
		struct sigaction action = { .sa_handler =
						    caught_signals[i].handler };

		sigaction(caught_signals[i].number, &action,
			  &former_actions[i]);
	}
}

static void give_signals_back(void)
{
	size_t i;

	for (i = 0; i < NR_SIGNALS; i++)
		sigaction(caught_signals[i].number, &former_actions[i], NULL);
}

/* In the child: tells through the pipe why there is no such program. */
static void exec_command(char **argv, const int *failed)
{
	int error;

	give_signals_back();
	execvp(argv[0], argv);
	error = errno;
	if (write(failed[1], &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

static int start_command(struct umt *subscriber, char **argv, pid_t *pid)
{
	int failed[2], error = 0;

	if (pipe2(failed, O_CLOEXEC))
		return say_error(errno, "making a pipe");
	error = -umt_thread_add(subscriber);
	if (error)
		return say_error(error, "watching threads");
	*pid = fork();
	if (!*pid)
		exec_command(argv, failed);
	umt_thread_remove(subscriber);
	close(failed[1]);
	if (*pid < 0)
		return say_error(errno, "starting %s", argv[0]);
	if (read(failed[0], &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(failed[0]);
	if (!error)
		return 0;
	waitpid(*pid, NULL, 0);
	say_error(error, "starting %s", argv[0]);
	return error == ENOENT ? 127 : 126;
}

static void drain_events(struct watch *watch, struct umt *subscriber)
{
	uint32_t self = (uint32_t)syscall(SYS_gettid);
	struct umt_event event;

	while (umt_next(subscriber, &event) == 1)
		if (event.tid != self)
			account_event(&watch->account, &event);
}

static uint64_t lost_by(const struct umt *subscriber)
{
	const struct umt_core *cores = umt_cores(subscriber);
	uint64_t lost = 0;
	int cpu;

	for (cpu = 0; cpu < umt_nr_cores(subscriber); cpu++)
		lost += __atomic_load_n(&cores[cpu].lost, __ATOMIC_RELAXED);
	return lost;
}

static uint64_t now_ms(void)
{
	return monotonic_ns() / 1000000;
}

/* Until @ended says so. */
static void follow_process(struct watch *watch, struct umt *subscriber,
			   pid_t pid,
			   bool (*ended)(struct watch *watch, pid_t pid))
{
	struct pollfd fd = { .fd = umt_fd(subscriber), .events = POLLIN };
	uint64_t told_ms = now_ms();
	bool last;

	do {
		last = ended(watch, pid);
		drain_events(watch, subscriber);
		if (!last && watch->every_ms &&
		    now_ms() - told_ms >= watch->every_ms) {
			told_ms += watch->every_ms;
			watch->tick(watch);
		}
		if (!last)
			poll(&fd, 1, POLL_MS);
	} while (!last);
	watch->lost = lost_by(subscriber);
	account_close(&watch->account);
}

/* ---- a command ---- */

static bool command_ended(struct watch *watch, pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	watch->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
					    : WEXITSTATUS(status);
	return true;
}

static int begin_watch(struct watch *watch, struct umt **subscriber)
{
	int error = open_subscriber(subscriber);

	if (error)
		return error;
	error = account_begin(&watch->account, umt_nr_cores(*subscriber));
	if (error) {
		umt_close(*subscriber);
		return say_error(-error, "watching threads");
	}
	return 0;
}

int watch_command(struct watch *watch, char **argv)
{
	struct umt *subscriber;
	int error = begin_watch(watch, &subscriber);
	pid_t pid = -1;

	if (error)
		return error;
	take_signals();
	error = start_command(subscriber, argv, &pid);
	if (!error)
		follow_process(watch, subscriber, pid, command_ended);
	umt_close(subscriber);
	return error;
}

/* ---- a process ---- */

/* 0: the thread has gone. */
static char state_in(const char *path)
{
	FILE *stat = fopen(path, "re");
	char text[256];
	size_t len;

	if (!stat)
		return 0;
	len = fread(text, 1, sizeof(text) - 1, stat);
	fclose(stat);
	text[len] = '\0';
	return proc_stat_state(text);
}

/* Make the events that the program sends only for threads that it sees begin. */
static int introduce_thread(struct watch *watch, pid_t pid, int tid)
{
	struct umt_event event = { .tid = (uint32_t)tid,
				   .kind = UMT_NEW,
				   .detail = pid };
	char path[64], state;
	int error;

	event.time_ns = watch->account.now_ns;
	error = account_event(&watch->account, &event);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, tid);
	state = state_in(path);
	event.kind = UMT_BLOCK;
	/* The reason of a wait that is under way is a guess. */
	event.reason = state == 'D' ? UMT_IO : UMT_WAITING;
	if (!error && (state == 'S' || state == 'D'))
		error = account_event(&watch->account, &event);
	return error;
}

/*
 * Return: how many threads of the process were not attached before, or -errno.
 */
static int attach_all(struct watch *watch, struct umt *subscriber, pid_t pid)
{
	char path[40];
	struct dirent *entry;
	int nr = 0, error = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!error && (entry = readdir(tasks))) {
		int tid = atoi(entry->d_name);

		if (tid <= 0)
			continue;
		error = bpf_attach(subscriber, tid);
		if (!error) {
			nr++;
			error = introduce_thread(watch, pid, tid);
		} else if (error == -EEXIST || error == -ESRCH) {
			error = 0;
		}
	}
	closedir(tasks);
	return error ? error : nr;
}

/* Read the list again until it has no new thread: threads may make others meanwhile. */
static int attach_process(struct watch *watch, struct umt *subscriber,
			  pid_t pid)
{
	int nr, all = 0;

	do {
		nr = attach_all(watch, subscriber, pid);
		all += nr > 0 ? nr : 0;
	} while (nr > 0);
	return nr < 0 ? nr : all ? 0 : -ESRCH;
}

/* A zombie has ended, too. */
static bool process_ended(struct watch *watch, pid_t pid)
{
	struct pollfd end = { .fd = watch->pidfd, .events = POLLIN };

	return poll(&end, 1, 0) == 1;
}

int watch_process(struct watch *watch, pid_t pid)
{
	struct umt *subscriber;
	int error;

	if (!names_own_proc())
		return say_fail("watching process %d: /proc is not that of "
				"this PID namespace",
				(int)pid);
	error = begin_watch(watch, &subscriber);
	if (error)
		return error;
	watch->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	error = watch->pidfd < 0 ? -errno
				 : attach_process(watch, subscriber, pid);
	if (error)
		error = say_error(-error, "watching process %d", (int)pid);
	else
		follow_process(watch, subscriber, pid, process_ended);
	if (watch->pidfd >= 0)
		close(watch->pidfd);
	umt_close(subscriber);
	return error;
}
